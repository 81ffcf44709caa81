"""Stores the files that a user attaches to a question as artifacts, so that the log can refer to them."""

import logging

import msgspec

from limelight.errors import StoreError
from limelight.events import Attachment
from limelight.ids import sortable_id
from limelight.messages import InlineFile, Message, files_of
from limelight.models import Artifact, Run
from limelight.runs.store_retry import retry_while_unavailable
from limelight.stores.base import Store

log = logging.getLogger(__name__)

MAX_FILES = 20
MAX_URL = 2000
"""Maximum length of an attachment's URL in the log, in characters. The agent gets the URL unchanged."""


async def store_files(store: Store, question: Message, run: Run) -> tuple[Attachment, ...]:
    """Store the files of a question as artifacts. Return their descriptions for the `run_started` event of the run."""
    return tuple([await _store_file(store, file, run) for file in files_of(question)[:MAX_FILES]])


async def _store_file(store: Store, file: InlineFile, run: Run) -> Attachment:
    url = file.url if len(file.url) <= MAX_URL else ""
    kept = Attachment(media_type=file.media_type[:100], name=file.name[:200], url=url)
    if file.data is None:
        return kept
    artifact = Artifact(
        artifact_id=sortable_id("art_"), ref=run.ref, name=kept.name, media_type=kept.media_type, body=file.data
    )
    try:
        await retry_while_unavailable(lambda: store.put_artifact(artifact, run.run_id))
    except StoreError as error:
        log.error("run %s: attachment %s could not be stored: %s", run.run_id, kept.name, error)
        return kept
    return msgspec.structs.replace(kept, artifact_id=artifact.artifact_id)
