"""Cases of the store suite: large results and files are read in parts, and never mixed with what replaces them."""

import msgspec
import pytest

from limelight.models import Artifact, ArtifactInfo, Result, ResultInfo
from limelight.stores.base import Store
from tests.stores.operations import S1, MakeStore, RunWriter, begin, opened

KIB = 1024
SIZES = (0, 1, 256 * KIB - 1, 256 * KIB, 256 * KIB + 1, 512 * KIB, 700_001)
READ_SIZES = (256 * KIB, 100_000)


def body_of(size: int, seed: int = 0) -> bytes:
    """Bytes in which no two positions nearby look alike."""
    return b"".join((number + seed).to_bytes(4, "big") for number in range(size // 4 + 1))[:size]


async def store_result(run: RunWriter, body: bytes, media_type: str = "text/plain") -> None:
    await run.write(results=[Result(key="k", media_type=media_type, body=body)])


async def result_info(store: Store, run: RunWriter) -> ResultInfo:
    info = await store.result_info(run.run, "k")
    assert info is not None
    return info


async def store_file(store: Store, run: RunWriter, body: bytes, artifact_id: str = "a") -> ArtifactInfo:
    file = Artifact(artifact_id=artifact_id, ref=S1, name="ä.bin", media_type="text/plain", body=body)
    await store.put_artifact(file, run.run_id)
    info = await store.artifact_info(artifact_id)
    assert info is not None
    return info


class LargeValueCases:
    @pytest.mark.parametrize("read_size", READ_SIZES)
    @pytest.mark.parametrize("size", SIZES)
    async def test_parts_of_a_result_are_its_body(self, store: Store, size: int, read_size: int) -> None:
        run, body = await begin(store, "r1"), body_of(size)
        await store_result(run, body, "application/json")
        for _ in range(2):
            info = await result_info(store, run)
            assert (info.key, info.media_type, info.size) == ("k", "application/json", size)
            parts = [await store.result_part(run.run, info, at, read_size) for at in range(0, size + 1, read_size)]
            assert b"".join(part or b"" for part in parts) == body and None not in parts
            if run.acknowledged:
                break
            await run.end()

    async def test_part_of_a_result_crosses_the_boundaries_of_the_stored_parts(self, store: Store) -> None:
        run, body = await begin(store, "r1"), body_of(800_000)
        await store_result(run, body)
        info = await result_info(store, run)
        for boundary in (256 * KIB, 512 * KIB, 768 * KIB, 800_000):
            for offset in (boundary - 1, boundary, boundary + 1):
                for size in (0, 1, 2, 300 * KIB, 10**7):
                    part = await store.result_part(run.run, info, offset, size)
                    assert part == body[offset : offset + size]

    async def test_unknown_values_have_no_parts(self, store: Store) -> None:
        run = await begin(store, "r1")
        assert await store.result_info(run.run, "k") is None
        assert await store.artifact_info("a") is None
        unknown = ResultInfo(key="k", media_type="text/plain", size=1, version="1")
        assert await store.result_part(run.run, unknown, 0, 1) is None

    @pytest.mark.parametrize("size", [10, 700_000])
    async def test_part_of_a_replaced_result_is_none(self, store: Store, size: int) -> None:
        run = await begin(store, "r1")
        await store_result(run, body_of(size))
        for seed in range(1, 4):
            before = await result_info(store, run)
            assert await store.result_part(run.run, before, 0, 4) == body_of(4, seed - 1)
            await store_result(run, body_of(size, seed))
            assert await store.result_part(run.run, before, 4, 4) is None
            after = await result_info(store, run)
            assert await store.result_part(run.run, after, 4, 4) == body_of(8, seed)[4:]

    async def test_result_of_another_run_does_not_change_the_version(self, store: Store) -> None:
        run = await begin(store, "r1")
        await store_result(run, body_of(10))
        before = await result_info(store, run)
        await run.end()
        other = await begin(store, "r2")
        await store_result(other, body_of(10))
        await store_result(other, body_of(20))
        assert await result_info(store, run) == before

    @pytest.mark.parametrize("size", SIZES)
    async def test_parts_of_a_file_are_its_body(self, store: Store, size: int) -> None:
        run, body = await begin(store, "r1"), body_of(size)
        info = await store_file(store, run, body)
        assert (info.artifact_id, info.ref, info.name, info.media_type, info.size) == (
            "a", S1, "ä.bin", "text/plain", size,
        )  # fmt: skip
        for read_size in READ_SIZES:
            parts = [await store.artifact_part(info, at, read_size) for at in range(0, size + 1, read_size)]
            assert b"".join(part or b"" for part in parts) == body and None not in parts

    async def test_parts_of_a_deleted_session_are_none(self, store: Store) -> None:
        run = await begin(store, "r1")
        await store_result(run, body_of(700_000))
        file = await store_file(store, run, body_of(700_000))
        info = await result_info(store, run)
        assert await store.result_part(run.run, info, 0, 4) == await store.artifact_part(file, 0, 4) == body_of(4)
        await run.end()
        await store.delete(S1)
        again = await begin(store, "r2")  # its rows may take the places of the deleted ones
        await store_result(again, body_of(700_000, 1))
        await store_file(store, again, body_of(700_000, 1), "b")
        assert await store.result_part(run.run, info, 4, 4) is None
        assert await store.artifact_part(file, 4, 4) is None

    async def test_default_parts_agree(self, store: Store) -> None:
        run, body = await begin(store, "r1"), body_of(700_000)
        await store_result(run, body)
        info, default = await result_info(store, run), await Store.result_info(store, run.run, "k")
        assert default is not None and (default.media_type, default.size) == (info.media_type, info.size)
        file = await store_file(store, run, body)
        assert await Store.artifact_info(store, "a") == file
        for offset in (0, 300_000, 699_999, 700_000):
            part = await store.result_part(run.run, info, offset, 300_000)
            assert part == await Store.result_part(store, run.run, default, offset, 300_000)
            assert part == await store.artifact_part(file, offset, 300_000)
            assert part == await Store.artifact_part(store, file, offset, 300_000)
        await store_result(run, body_of(700_000, 1))
        assert await Store.result_part(store, run.run, default, 0, 1) is None
        assert await Store.result_info(store, run.run, "none") is await Store.artifact_info(store, "none") is None
        assert await Store.artifact_part(store, msgspec.structs.replace(file, artifact_id="none"), 0, 1) is None

    async def test_parts_are_read_from_a_reopened_store(self, make_store: MakeStore) -> None:
        body = body_of(700_000)
        async with opened(make_store) as store:
            run = await begin(store, "r1")
            await store_result(run, body)
            await run.end()
        async with opened(make_store) as store:
            info = await result_info(store, run)
            assert await store.result_part(run.run, info, 10, 10**6) == body[10:]
