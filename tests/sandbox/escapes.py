"""Known ways out of a Python sandbox, as data: code that runs as native Python in a worker.

Each piece of code sets `reached` to a true value if it gets out. An OSError means that the kernel has refused it; any
other error must be named in `errors`, so that a broken attack is not taken for a refused one. `target` describes what
the test has put outside of the sandbox. The code must never run outside of a sandbox, but for that of UNCONFINED.
"""

from typing import NamedTuple

PRELUDE = r"""
import ctypes, errno, os, platform, socket, struct, sys, time
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
NUMBERS = {
    "x86_64": {
        "open": 2, "shmat": 30, "socket": 41, "fork": 57, "vfork": 58, "execve": 59, "ptrace": 101, "clone": 56,
        "prctl": 157, "setrlimit": 160, "mount": 165, "process_vm_readv": 310, "process_vm_writev": 311,
        "unshare": 272, "setns": 308, "bpf": 321, "keyctl": 250, "memfd_create": 319, "execveat": 322, "seccomp": 317,
        "add_key": 248, "kcmp": 312, "name_to_handle_at": 303, "open_by_handle_at": 304, "perf_event_open": 298,
        "userfaultfd": 323, "chroot": 161, "pivot_root": 155, "tkill": 200, "tgkill": 234, "kill": 62,
        "rt_sigqueueinfo": 129, "prlimit64": 302, "setpriority": 141, "sched_setaffinity": 203, "ioprio_set": 251,
        "personality": 135, "sethostname": 170, "quotactl": 179, "syslog": 103, "umount2": 166, "shmget": 29,
        "msgget": 68, "semget": 64, "mq_open": 240, "inotify_add_watch": 254, "inotify_init1": 294, "fcntl": 72,
        "init_module": 175, "reboot": 169, "settimeofday": 164, "modify_ldt": 154, "iopl": 172, "acct": 163,
        "io_setup": 206,
    },
    "aarch64": {
        "shmat": 196, "socket": 198, "execve": 221, "ptrace": 117, "clone": 220, "prctl": 167, "setrlimit": 164,
        "mount": 40, "process_vm_readv": 270, "process_vm_writev": 271, "unshare": 97, "setns": 268, "bpf": 280,
        "keyctl": 219, "memfd_create": 279, "execveat": 281, "seccomp": 277, "add_key": 217, "kcmp": 272,
        "name_to_handle_at": 264, "open_by_handle_at": 265, "perf_event_open": 241, "userfaultfd": 282, "chroot": 51,
        "pivot_root": 41, "tkill": 130, "tgkill": 131, "kill": 129, "rt_sigqueueinfo": 138, "prlimit64": 261,
        "setpriority": 140, "sched_setaffinity": 122, "ioprio_set": 30, "personality": 92, "sethostname": 161,
        "quotactl": 60, "syslog": 116, "umount2": 39, "shmget": 194, "msgget": 186, "semget": 190, "mq_open": 180,
        "inotify_add_watch": 27, "inotify_init1": 26, "fcntl": 25, "init_module": 105, "reboot": 142,
        "settimeofday": 170, "acct": 89, "io_setup": 0,
    },
}[platform.machine()]
NUMBERS |= {
    "pidfd_send_signal": 424, "io_uring_setup": 425, "open_tree": 428, "fsopen": 430, "clone3": 435, "openat2": 437,
    "pidfd_open": 434, "pidfd_getfd": 438, "process_madvise": 440, "mount_setattr": 442, "landlock_create_ruleset": 444,
}


def syscall(name, *arguments):
    if name not in NUMBERS and isinstance(name, str):
        raise OSError(errno.ENOSYS, "this machine has no " + name)
    number = NUMBERS.get(name, name)
    words = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    result = libc.syscall(ctypes.c_long(number), *words)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result


def read(path):
    with open(path, "rb") as stream:
        return stream.read(100_000).decode("utf-8", "replace")


def is_secret(value):
    return target["secret_backwards"][::-1] in str(value)
"""


class Escape(NamedTuple):
    """One attempt to get out of a sandbox."""

    name: str
    code: str
    errors: tuple[str, ...] = ()
    """Names of errors, besides OSError, with which the attempt may fail."""


def _read(name: str, path: str) -> Escape:
    return Escape(name, f"text = read({path})\nreached = is_secret(text) and text")


OUTSIDE_FILES = [
    _read("read_data_folder", "target['database']"),
    _read("read_config_file", "target['config']"),
    _read("read_ssh_key", "target['home'] + '/.ssh/id_rsa'"),
    _read("read_other_workspace", "target['other_workspace'] + '/notes.txt'"),
    _read("read_dot_dot", "'../outside/data/limelight.db'"),
    _read("read_dot_dot_after_chdir", "(os.chdir('..'), 'outside/config.toml')[1]"),
    _read("read_proc_self_root", "'/proc/self/root' + target['database']"),
    _read("read_proc_1_root", "'/proc/1/root' + target['database']"),
    _read("read_proc_server_root", "'/proc/%d/root%s' % (target['server_pid'], target['database'])"),
    _read("read_proc_server_cwd", "'/proc/%d/cwd/outside/config.toml' % target['server_pid']"),
    _read("read_proc_server_environ", "'/proc/%d/environ' % target['server_pid']"),
    _read("read_proc_victim_environ", "'/proc/%d/environ' % target['victim_pid']"),
    _read("read_proc_server_fd", "'/proc/%d/fd/%d' % (target['server_pid'], target['server_fd'])"),
    _read("read_proc_server_maps", "'/proc/%d/maps' % target['server_pid']"),
    Escape("read_proc_locks", "reached = read('/proc/locks')"),
    _read("read_proc_thread_environ", "'/proc/%d/task/%d/environ' % (target['server_pid'], target['server_pid'])"),
    Escape("read_etc_shadow", "reached = read('/etc/shadow')"),
    Escape("read_server_home", "reached = os.listdir(target['home'])"),
    Escape("list_data_folder", "reached = os.listdir(os.path.dirname(target['database']))"),
    Escape("list_workspaces", "reached = 'outside' in os.listdir('..') and 'outside'"),
    Escape(
        "list_host_processes", "reached = target['server_pid'] in map(int, filter(str.isdigit, os.listdir('/proc')))"
    ),
    Escape("read_proc_server_mem", "reached = os.open('/proc/%d/mem' % target['server_pid'], os.O_RDONLY)"),
    Escape("write_proc_server_mem", "reached = os.open('/proc/%d/mem' % target['server_pid'], os.O_RDWR)"),
    Escape("read_dev_mem", "reached = os.open('/dev/mem', os.O_RDONLY)"),
    Escape("read_dev_kmem", "reached = os.open('/dev/kmem', os.O_RDONLY)"),
    Escape("read_dev_kmsg", "reached = os.open('/dev/kmsg', os.O_RDONLY)"),
    Escape("read_proc_kcore", "reached = os.open('/proc/kcore', os.O_RDONLY)"),
    Escape(
        "open_block_devices",
        """
found = [name for name in ("vda", "sda", "nvme0n1", "loop-control", "fuse", "kvm", "net/tun", "ptmx0")]
opened = []
for name in found:
    try:
        opened.append(os.open("/dev/" + name, os.O_RDONLY))
    except OSError as error:
        refusal = error
reached = opened
if not opened:
    raise refusal
""",
    ),
    Escape(
        "make_device",
        """
os.mknod("device", 0o666 | 0o020000, os.makedev(1, 1))  # /dev/mem
reached = os.open("device", os.O_RDONLY)
""",
    ),
    Escape(
        "symlink_out",
        """
os.symlink(target["database"], "link")
try:
    reached = is_secret(read("link"))
finally:
    os.unlink("link")
""",
    ),
    Escape(
        "symlink_folder_out",
        """
os.symlink("/", "root")
try:
    reached = is_secret(read("root" + target["config"]))
finally:
    os.unlink("root")
""",
    ),
    Escape("hard_link_out", "os.link(target['database'], 'hard'); reached = 'linked'"),
    Escape("rename_in", "os.rename(target['config'], 'mine'); reached = 'moved'"),
    Escape(
        "rename_out",
        """
open("mine", "w").write("mine")
os.rename("mine", target["outside"] + "/mine")
reached = "moved"
""",
    ),
    Escape(
        "open_by_folder_descriptor",
        """
folder = os.open("..", os.O_PATH | os.O_DIRECTORY)
reached = os.open("outside/config.toml", os.O_RDONLY, dir_fd=folder)
""",
    ),
    Escape(
        "openat2_system_call",
        """
how = struct.pack("=QQQ", os.O_RDONLY, 0, 0)
reached = syscall("openat2", -100, target["database"].encode(), how, len(how))
""",
    ),
    Escape("open_system_call", "reached = syscall('open', target['database'].encode(), 0, 0)"),
    Escape(
        "open_by_handle",
        """
handle = struct.pack("=Ii", 128, 0) + bytes(128)
handle = ctypes.create_string_buffer(handle)
mount = ctypes.c_int()
syscall("name_to_handle_at", -100, target["database"].encode(), handle, ctypes.byref(mount), 0)
reached = "handle"
""",
    ),
    Escape(
        "inherited_descriptors",
        """
found = []
for number in range(3, 4096):
    try:
        os.fstat(number)
        os.lseek(number, 0, 0)
        found.append(os.read(number, 1000))
    except OSError:
        pass
reached = [text for text in found if is_secret(text)]
""",
    ),
    Escape(
        "o_path_descriptor_reopened",
        """
path = os.open(target["database"], os.O_PATH)
reached = os.open(f"/proc/self/fd/{path}", os.O_RDONLY)
""",
    ),
    Escape(
        "copy_between_folders",
        """
import shutil
reached = shutil.copytree(os.path.dirname(target["database"]), "copy")
""",
        ("Error",),
    ),
    Escape(
        "sqlite_of_the_server",
        """
import sqlite3
reached = sqlite3.connect("file:" + target["database"] + "?mode=ro", uri=True).execute("pragma schema_version")
""",
        ("OperationalError",),
    ),
]

WRITES = [
    Escape("write_outside", "open(target['outside'] + '/new', 'w').write('x'); reached = 'written'"),
    Escape("append_to_database", "open(target['database'], 'a').write('x'); reached = 'written'"),
    Escape("truncate_outside", "os.truncate(target['database'], 0); reached = 'truncated'"),
    Escape("unlink_outside", "os.unlink(target['database']); reached = 'unlinked'"),
    Escape("remove_folder_outside", "os.rmdir(target['outside'] + '/empty'); reached = 'removed'"),
    Escape("make_folder_outside", "os.mkdir(target['outside'] + '/made'); reached = 'made'"),
    Escape("symlink_made_outside", "os.symlink('x', target['outside'] + '/made'); reached = 'made'"),
    Escape("fifo_made_outside", "os.mkfifo(target['outside'] + '/made'); reached = 'made'"),
    Escape(
        "write_libraries",
        """
import limelight
path = os.path.join(os.path.dirname(limelight.__file__), "planted.py")
open(path, "w").write("x = 1")
reached = path
""",
    ),
    Escape(
        "write_site_packages",
        """
import smolagents
path = os.path.join(os.path.dirname(os.path.dirname(smolagents.__file__)), "planted.pth")
open(path, "w").write("import os")
reached = path
""",
    ),
    Escape("write_interpreter", "reached = os.open(os.path.realpath(sys.executable), os.O_RDWR)"),
    Escape("write_usr", "open('/usr/planted', 'w').write('x'); reached = 'written'"),
    Escape("write_etc", "open('/etc/planted', 'w').write('x'); reached = 'written'"),
    Escape("write_read_only_folder", "open(target['library'] + '/planted', 'w').write('x'); reached = 'written'"),
    Escape("write_core_pattern", "reached = os.open('/proc/sys/kernel/core_pattern', os.O_WRONLY)"),
    Escape("write_sysrq", "reached = os.open('/proc/sysrq-trigger', os.O_WRONLY)"),
    Escape("write_uevent_helper", "reached = os.open('/sys/kernel/uevent_helper', os.O_WRONLY)"),
    Escape(
        "write_own_oom_score",
        """
descriptor = os.open("/proc/%d/oom_score_adj" % target["server_pid"], os.O_WRONLY)
reached = "opened"
""",
    ),
    Escape(
        "remount_writable",
        """
syscall("mount", b"none", b"/usr", None, 32 | 4096, None)
open("/usr/planted", "w").write("x")
reached = "written"
""",
    ),
]

METADATA = [
    Escape("chmod_outside", "os.chmod(target['config'], 0o777)"),
    Escape("fchmod_of_library", "os.fchmod(os.open(target['library'] + '/text', os.O_RDONLY), 0o777)"),
    Escape("chown_outside", "os.chown(target['config'], 1000, 1000)"),
    Escape("utime_outside", "os.utime(target['config'], (1, 1))"),
    Escape("futimens_of_library", "os.utime(os.open(target['library'] + '/text', os.O_RDONLY), (1, 1))"),
    Escape("setxattr_outside", "os.setxattr(target['config'], 'user.planted', b'x')"),
    Escape("setxattr_of_library", "os.setxattr(target['library'] + '/text', 'user.planted', b'x')"),
    Escape("removexattr_outside", "os.removexattr(target['config'], 'user.kept')"),
    Escape("getxattr_outside", "reached = os.getxattr(target['config'], 'user.kept')"),
    Escape("listxattr_outside", "reached = os.listxattr(target['config'])"),
    Escape("fchmodat2_outside", "syscall(452, -100, target['config'].encode(), 0o777, 0)"),
    Escape(
        "setxattrat_outside",
        """
value = ctypes.create_string_buffer(b"x")
about = struct.pack("=QII", ctypes.addressof(value), 1, 0)
syscall(463, -100, target["config"].encode(), 0, b"user.planted", about, len(about))
""",
    ),
]
"""Changes of metadata. They may report success; the test looks at the files."""

ENVIRONMENT = [
    Escape("environment", "reached = [name for name, value in os.environ.items() if is_secret(value)]"),
    Escape(
        "environment_of_c",
        """
environ = ctypes.POINTER(ctypes.c_char_p).in_dll(libc, "environ")
values, number = [], 0
while environ[number]:
    values.append(environ[number].decode())
    number += 1
reached = [value for value in values if is_secret(value)]
""",
    ),
    Escape(
        "environment_of_proc",
        """
text = read("/proc/self/environ") + read("/proc/1/environ") + read("/proc/self/cmdline") + read("/proc/1/cmdline")
reached = is_secret(text) and text
""",
    ),
    Escape(
        "environment_by_format_string",
        """
import random
text = "{0._os.environ}".format(random)
reached = is_secret(text) and text
""",
    ),
    Escape(
        "secret_in_objects",
        """
import gc
wanted = target.pop("secret_backwards")[::-1]
start, end = wanted[:8], wanted[8:]
found = []
for one in gc.get_objects():
    values = one.values() if type(one) is dict else one if type(one) in (list, tuple, set) else ()
    texts = [value for value in list(values) if type(value) is str and value is not wanted]
    found += [text for text in texts if start in text and text.partition(start)[2].startswith(end)]
reached = found
""",
    ),
    Escape(
        "secret_in_frames",
        """
frame, found = sys._getframe(), []
while frame is not None:
    for name, value in [*frame.f_globals.items(), *frame.f_locals.items()]:
        if name not in ("target", "text", "source") and type(value) is str and is_secret(value):
            found.append(name)
    frame = frame.f_back
reached = found
""",
    ),
    Escape(
        "secret_in_own_memory",
        """
text = read("/proc/self/maps")
memory = os.open("/proc/self/mem", os.O_RDONLY)
wanted = ("LIMELIGHT_TEST" + "_SECRET=").encode()
found = []
for line in text.splitlines():
    first, last = (int(part, 16) for part in line.split()[0].split("-"))
    if "[stack]" in line:
        found.append(wanted in os.pread(memory, last - first, first))
reached = any(found)
""",
    ),
]

PROCESSES = [
    Escape("fork", "pid = os.fork()\nif pid == 0:\n    os._exit(0)\nreached = pid"),
    Escape("forkpty", "pid, _ = os.forkpty()\nif pid == 0:\n    os._exit(0)\nreached = pid"),
    Escape("fork_system_call", "pid = syscall('fork')\nif pid == 0:\n    os._exit(0)\nreached = pid"),
    Escape("clone_system_call", "pid = syscall('clone', 17, 0, 0, 0, 0)\nif pid == 0:\n    os._exit(0)\nreached = pid"),
    Escape(
        "clone_high_bits",
        """
pid = syscall("clone", 17 | 1 << 40, 0, 0, 0, 0)
if pid == 0:
    os._exit(0)
reached = pid
""",
    ),
    Escape(
        "clone3_system_call",
        """
about = struct.pack("=11Q", 0, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
pid = syscall("clone3", about, len(about))
if pid == 0:
    os._exit(0)
reached = pid
""",
    ),
    Escape(
        "clone_thread_with_namespace", "syscall('clone', 0x10000 | 0x800 | 0x100 | 0x10000000, 0, 0, 0, 0); reached = 1"
    ),
    Escape("subprocess_run", "import subprocess; reached = subprocess.run(['/usr/bin/id'], capture_output=True)"),
    Escape("os_system", "reached = os.system('id') == 0"),
    Escape("os_popen", "reached = os.popen('id').read()"),
    Escape("posix_spawn", "reached = os.posix_spawn('/usr/bin/id', ['id'], {})"),
    Escape("libc_system", "reached = libc.system(b'true') == 0"),
    Escape("libc_popen", "libc.popen.restype = ctypes.c_void_p; reached = libc.popen(b'true', b'r')"),
    Escape("execve", "os.execv('/usr/bin/id', ['id'])"),
    Escape(
        "execveat_of_memory",
        """
descriptor = syscall("memfd_create", b"program", 0)
os.write(descriptor, open("/usr/bin/id", "rb").read())
arguments = (ctypes.c_char_p * 2)(b"id", None)
syscall("execveat", descriptor, b"", arguments, None, 0x1000)
reached = "executed"
""",
    ),
    Escape(
        "multiprocessing",
        """
import multiprocessing
process = multiprocessing.get_context("fork").Process(target=print)
process.start()
reached = process.pid
""",
    ),
    Escape(
        "multiprocessing_spawn",
        """
import multiprocessing
process = multiprocessing.get_context("spawn").Process(target=print)
process.start()
reached = process.pid
""",
        ("TypeError", "AttributeError"),
    ),
    Escape(
        "popen_from_subclasses",
        """
wrapper = [kind for kind in object.__subclasses__() if kind.__name__ == "_wrap_close"][0]
reached = wrapper.__init__.__globals__["popen"]("id").read()
""",
    ),
    Escape(
        "popen_by_get_field",
        """
import random, string
popen, _ = string.Formatter().get_field("0._os.popen", [random], {})
reached = popen("id").read()
""",
    ),
    Escape(
        "popen_from_builtins_of_a_function",
        """
import collections
builtins = collections.namedtuple.__globals__["__builtins__"]
reached = builtins["__import__"]("os").popen("id").read()
""",
    ),
    Escape(
        "import_by_loader",
        """
loader = type(__import__("importlib.machinery").machinery.BuiltinImporter)
posix = __import__("importlib").machinery.BuiltinImporter.load_module("posix")
reached = posix.open(target["database"], 0)
""",
    ),
    Escape(
        "code_from_traceback_frame",
        """
try:
    1 / 0
except ZeroDivisionError as error:
    frame = error.__traceback__.tb_frame
    while frame.f_back is not None:
        frame = frame.f_back
    reached = frame.f_globals["os"].popen("id").read()
""",
        ("KeyError",),
    ),
    Escape(
        "code_from_generator_frame",
        """
def generate():
    yield generator.gi_frame.f_back
generator = generate()
frame = next(generator)
while frame is not None and "subprocess" not in frame.f_builtins:
    frame = frame.f_back
reached = __import__("subprocess").check_output(["id"])
""",
    ),
    Escape(
        "signal_handler_runs_commands",
        """
import signal
results = []
def handle(*_):
    try:
        results.append(os.fork())
    except OSError as error:
        results.append(error)
libc.signal.restype = ctypes.c_void_p
handler = ctypes.CFUNCTYPE(None, ctypes.c_int)(handle)
libc.signal(signal.SIGUSR1, handler)
os.kill(os.getpid(), signal.SIGUSR1)
if isinstance(results[0], OSError):
    raise results[0]
reached = results
""",
    ),
]

KERNEL = [
    Escape("x32_open", "reached = syscall(0x40000000 | 2, target['database'].encode(), 0, 0)"),
    Escape("x32_fork", "reached = syscall(0x40000000 | 57)"),
    Escape("x32_socket", "reached = syscall(0x40000000 | 41, 2, 1, 0)"),
    Escape("x32_execve", "reached = syscall(0x40000000 | 520, b'/usr/bin/id', None, None)"),
    Escape("negative_system_call", "reached = syscall(-1)"),
    Escape("future_system_call", "reached = syscall(600)"),
    Escape("ptrace_attach_server", "syscall('ptrace', 16, target['server_pid'], 0, 0); reached = 'attached'"),
    Escape("ptrace_seize_victim", "syscall('ptrace', 0x4206, target['victim_pid'], 0, 0); reached = 'seized'"),
    Escape("ptrace_traceme", "syscall('ptrace', 0, 0, 0, 0); reached = 'traced'"),
    Escape(
        "process_vm_readv",
        """
buffer = ctypes.create_string_buffer(64)
local = struct.pack("=QQ", ctypes.addressof(buffer), 64)
remote = struct.pack("=QQ", target["server_address"], 64)
syscall("process_vm_readv", target["server_pid"], local, 1, remote, 1, 0)
reached = buffer.raw
""",
    ),
    Escape(
        "process_vm_writev",
        """
buffer = ctypes.create_string_buffer(64)
vector = struct.pack("=QQ", ctypes.addressof(buffer), 64)
syscall("process_vm_writev", target["victim_pid"], vector, 1, vector, 1, 0)
reached = "written"
""",
    ),
    Escape("mount_proc", "os.mkdir('m'); syscall('mount', b'proc', b'm', b'proc', 0, None); reached = os.listdir('m')"),
    Escape("mount_bind_root", "syscall('mount', b'/', b'/tmp', None, 4096, None); reached = 'mounted'"),
    Escape("umount_proc", "syscall('umount2', b'/proc', 2); reached = 'unmounted'"),
    Escape("umount_workspace", "syscall('umount2', os.getcwd().encode(), 2); reached = 'unmounted'"),
    Escape("open_tree", "reached = syscall('open_tree', -100, b'/', 1)"),
    Escape("fsopen", "reached = syscall('fsopen', b'tmpfs', 0)"),
    Escape("mount_setattr", "syscall('mount_setattr', -100, b'/usr', 0, bytes(32), 32); reached = 'changed'"),
    Escape("chroot", "syscall('chroot', b'/tmp'); reached = 'changed'"),
    Escape("pivot_root", "syscall('pivot_root', b'.', b'.'); reached = 'changed'"),
    Escape("unshare_user", "syscall('unshare', 0x10000000); reached = 'unshared'"),
    Escape("unshare_mount", "syscall('unshare', 0x00020000); reached = 'unshared'"),
    Escape(
        "setns_of_server",
        """
descriptor = os.open("/proc/%d/ns/mnt" % target["server_pid"], os.O_RDONLY)
syscall("setns", descriptor, 0)
reached = "entered"
""",
    ),
    Escape("setns_of_init", "syscall('setns', os.open('/proc/1/ns/user', os.O_RDONLY), 0); reached = 'entered'"),
    Escape("io_uring", "reached = syscall('io_uring_setup', 8, ctypes.create_string_buffer(120))"),
    Escape("bpf", "reached = syscall('bpf', 0, ctypes.create_string_buffer(128), 128)"),
    Escape("perf_event_open", "reached = syscall('perf_event_open', ctypes.create_string_buffer(128), 0, -1, -1, 0)"),
    Escape("userfaultfd", "reached = syscall('userfaultfd', 1)"),
    Escape("keyctl", "reached = syscall('keyctl', 0, -3, 1)"),
    Escape("add_key", "reached = syscall('add_key', b'user', b'x', b'y', 1, -3)"),
    Escape("kcmp", "syscall('kcmp', os.getpid(), target['server_pid'], 0, 0, 0); reached = 'compared'"),
    Escape("init_module", "syscall('init_module', b'', 0, b''); reached = 'loaded'"),
    Escape("reboot", "syscall('reboot', 0, 0, 0, 0); reached = 'rebooted'"),
    Escape("kernel_log", "buffer = ctypes.create_string_buffer(1000); reached = syscall('syslog', 3, buffer, 1000)"),
    Escape("set_clock", "time.clock_settime(time.CLOCK_REALTIME, time.time()); reached = 'set'"),
    Escape("set_hostname", "socket.sethostname('taken'); reached = 'set'"),
    Escape("personality", "reached = syscall('personality', 0x0400000) + 1"),
    Escape("modify_ldt", "reached = syscall('modify_ldt', 0, ctypes.create_string_buffer(64), 64) + 1"),
    Escape("iopl", "syscall('iopl', 3); reached = 'raised'"),
    Escape("acct", "syscall('acct', None); reached = 'changed'"),
    Escape(
        "setuid_root",
        """
os.setresuid(1, 1, 1)
os.setresuid(0, 0, 0)
reached = "root again"
""",
    ),
    Escape(
        "raise_capabilities",
        """
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
data = (ctypes.c_uint32 * 6)(*[0xFFFFFFFF] * 6)
if libc.capset(header, data) != 0:
    raise OSError(ctypes.get_errno(), "capset")
reached = "capabilities"
""",
    ),
    Escape("reset_parent_death_signal", "syscall('prctl', 1, 0, 0, 0, 0); reached = 'reset'"),
    Escape("reset_parent_death_signal_high_bits", "syscall('prctl', 1 | 1 << 33, 0, 0, 0, 0); reached = 'reset'"),
    Escape("reset_no_new_privileges", "syscall('prctl', 38, 0, 0, 0, 0); reached = 'reset'"),
    Escape("disable_seccomp", "syscall('prctl', 22, 0, 0, 0, 0); reached = 'disabled'"),
    Escape(
        "permissive_seccomp_filter",
        """
allow = struct.pack("=HBBI", 6, 0, 0, 0x7FFF0000)
buffer = ctypes.create_string_buffer(allow)
syscall("seccomp", 1, 0, struct.pack("=H6xQ", 1, ctypes.addressof(buffer)))
pid = os.fork()
if pid == 0:
    os._exit(0)
reached = pid
""",
    ),
    Escape(
        "permissive_landlock_ruleset",
        """
attributes = struct.pack("=QQQ", 1, 0, 0)
rules = syscall("landlock_create_ruleset", attributes, 24, 0)
place = os.open("/", os.O_PATH)
syscall(445, rules, 1, struct.pack("=Qi", 1, place), 0)
syscall(446, rules, 0)
reached = is_secret(read(target["database"]))
""",
    ),
    Escape(
        "raise_memory_limit",
        """
import resource
resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
reached = "raised"
""",
        ("ValueError",),
    ),
    Escape(
        "terminal_input_injection",
        """
import fcntl
terminal = os.open("/dev/tty", os.O_RDWR)
fcntl.ioctl(terminal, 0x5412, b"x")
reached = "typed"
""",
    ),
    Escape(
        "terminal_ioctl_on_standard_files",
        """
import fcntl
for number in range(6):
    try:
        fcntl.ioctl(number, 0x5412, b"x")
        reached = number
    except OSError as error:
        refusal = error
if not reached:
    raise refusal
""",
    ),
]

OTHER_PROCESSES = [
    Escape("kill_server", "os.kill(target['server_pid'], 10); reached = 'signalled'"),
    Escape("kill_probe_server", "os.kill(target['server_pid'], 0); reached = 'exists'"),
    Escape("kill_victim", "os.kill(target['victim_pid'], 9); reached = 'killed'"),
    Escape("kill_group_of_victim", "os.killpg(target['victim_pid'], 9); reached = 'killed'"),
    Escape("kill_everything", "os.kill(-1, 10); reached = 'signalled'"),
    Escape("kill_own_group", "os.kill(0, 10); reached = 'signalled'"),
    Escape("tkill_victim", "syscall('tkill', target['victim_pid'], 9); reached = 'killed'"),
    Escape("tgkill_victim", "syscall('tgkill', target['victim_pid'], target['victim_pid'], 9); reached = 'killed'"),
    Escape(
        "sigqueue_victim",
        """
syscall("rt_sigqueueinfo", target["victim_pid"], 9, ctypes.create_string_buffer(128))
reached = "killed"
""",
    ),
    Escape("pidfd_open_victim", "reached = syscall('pidfd_open', target['victim_pid'], 0)"),
    Escape("pidfd_getfd", "reached = syscall('pidfd_getfd', 3, target['server_fd'], 0)"),
    Escape(
        "pidfd_send_signal",
        """
descriptor = os.open("/proc/%d" % target["victim_pid"], os.O_RDONLY)
syscall("pidfd_send_signal", descriptor, 9, None, 0)
reached = "killed"
""",
    ),
    Escape(
        "lease",
        """
import fcntl
with open("leased", "w") as stream:
    fcntl.fcntl(stream, fcntl.F_SETLEASE, fcntl.F_WRLCK)
    reached = "whoever opens the file has to wait"
""",
    ),
    Escape(
        "notification_of_folder",
        """
import fcntl
fcntl.fcntl(os.open(".", os.O_RDONLY), fcntl.F_NOTIFY, fcntl.DN_CREATE)
reached = "watched"
""",
    ),
    Escape("asynchronous_io", "syscall('io_setup', 1, ctypes.byref(ctypes.c_ulong(0))); reached = 'a context'"),
    Escape(
        "sigio_to_victim",
        """
import fcntl
one, other = os.pipe()
fcntl.fcntl(one, fcntl.F_SETOWN, target["victim_pid"])
fcntl.fcntl(one, 10, 9)  # F_SETSIG, SIGKILL
fcntl.fcntl(one, fcntl.F_SETFL, os.O_ASYNC)
os.write(other, b"x")
reached = "signal requested"
""",
    ),
    Escape(
        "limit_files_of_victim",
        """
syscall("prlimit64", target["victim_pid"], 7, struct.pack("=QQ", 1, 1), None)
reached = "limited"
""",
    ),
    Escape(
        "limit_cpu_of_server",
        """
syscall("prlimit64", target["server_pid"], 0, struct.pack("=QQ", 10**6, 2**64 - 1), None)
reached = "limited"
""",
    ),
    Escape("priority_of_victim", "os.setpriority(os.PRIO_PROCESS, target['victim_pid'], 19); reached = 'lowered'"),
    Escape("priority_of_user", "os.setpriority(os.PRIO_USER, os.getuid(), 11); reached = target['is_shared_pid']"),
    Escape("affinity_of_victim", "os.sched_setaffinity(target['victim_pid'], {0}); reached = 'moved'"),
    Escape(
        "scheduler_of_victim",
        """
os.sched_setscheduler(target["victim_pid"], os.SCHED_IDLE, os.sched_param(0))
reached = "changed"
""",
    ),
    Escape("io_priority_of_victim", "syscall('ioprio_set', 1, target['victim_pid'], 3 << 13); reached = 'lowered'"),
    Escape(
        "shared_memory_of_server",
        """
libc.shmat.restype = ctypes.c_void_p
address = libc.shmat(target["shared_memory"], None, 0o10000)
if address == ctypes.c_void_p(-1).value:
    raise OSError(ctypes.get_errno(), "shmat")
reached = ctypes.string_at(address, 64)
""",
    ),
    Escape(
        "remove_shared_memory_of_server",
        """
if libc.shmctl(target["shared_memory"], 0, None) != 0:
    raise OSError(ctypes.get_errno(), "shmctl")
reached = "removed"
""",
    ),
    Escape(
        "posix_shared_memory_of_server",
        """
from multiprocessing import resource_tracker, shared_memory
resource_tracker.register = resource_tracker.unregister = lambda *_: None
reached = bytes(shared_memory.SharedMemory(target["posix_memory"]).buf[:64])
""",
    ),
    Escape(
        "message_queue",
        "libc.mq_open.restype = ctypes.c_int; reached = syscall('mq_open', b'limelight', 0x40, 0o600, None) + 1",
    ),
    Escape(
        "watch_files",
        """
watcher = syscall("inotify_init1", 0)
reached = syscall("inotify_add_watch", watcher, target["database"].encode(), 0xFFF)
""",
    ),
]

NETWORK = [
    Escape("tcp_loopback", "reached = socket.create_connection(('127.0.0.1', target['tcp_port']), 2)"),
    Escape("tcp6_loopback", "s = socket.socket(socket.AF_INET6); s.connect(('::1', target['tcp_port'])); reached = 1"),
    Escape(
        "udp_loopback",
        """
connection = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
reached = connection.sendto(b"out", ("127.0.0.1", target["udp_port"]))
""",
    ),
    Escape("tcp_listen", "s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(); reached = s.getsockname()"),
    Escape("socket_system_call", "reached = syscall('socket', 2, 1, 0)"),
    Escape("socket_system_call_high_bits", "reached = syscall('socket', 2 | 1 << 32, 1, 0)"),
    Escape("unix_socket", "s = socket.socket(socket.AF_UNIX); s.connect(target['unix_socket']); reached = 1"),
    Escape("abstract_socket", "s = socket.socket(socket.AF_UNIX); s.connect('\\0' + target['abstract']); reached = 1"),
    Escape(
        "datagram_to_abstract_socket_by_pair",
        """
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
reached = one.sendto(b"out", "\\0" + target["abstract_datagram"])
""",
    ),
    Escape(
        "pair_connected_again_to_unix_socket",
        """
one, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
one.connect(target["unix_datagram"])
reached = one.send(b"out")
""",
    ),
    Escape("raw_socket", "reached = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)"),
    Escape("ping_socket", "reached = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)"),
    Escape("packet_socket", "reached = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0x300)"),
    Escape("netlink_socket", "reached = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)"),
    Escape("vsock", "reached = socket.socket(40, socket.SOCK_STREAM)"),
    Escape("kernel_crypto_socket", "reached = socket.socket(38, socket.SOCK_SEQPACKET)"),
    Escape("dns", "reached = socket.getaddrinfo('example.test', 80)"),
    Escape(
        "urllib",
        """
import urllib.request
reached = urllib.request.urlopen("http://127.0.0.1:%d" % target["tcp_port"], timeout=2)
""",
    ),
    Escape("inet_socket_by_pair", "reached = socket.socketpair(socket.AF_INET)"),
    Escape(
        "many_socket_pairs",
        """
pairs = []
try:
    while len(pairs) <= 64:
        pairs.append(socket.socketpair())
    reached = len(pairs)
finally:
    for one, other in pairs:
        one.close()
        other.close()
""",
    ),
]

NATIVE = [
    *OUTSIDE_FILES,
    *WRITES,
    *METADATA,
    *ENVIRONMENT,
    *PROCESSES,
    *KERNEL,
    *OTHER_PROCESSES,
    *NETWORK,
]

INTERPRETED = [
    Escape("format_string_environment", "import random\nresult = '{0._os.environ}'.format(random)"),
    Escape(
        "get_field_popen",
        """
import random, string
popen, _ = string.Formatter().get_field("0._os.popen", [random], {})
result = popen("id").read()
""",
    ),
    Escape(
        "get_field_open",
        """
import random, string
system, _ = string.Formatter().get_field("0._os", [random], {})
opened = system.open(target["database"], 0)
result = str(system.read(opened, 1000))
""",
    ),
    Escape(
        "get_field_globals",
        """
import statistics, string
found, _ = string.Formatter().get_field("0.mean.__globals__[__builtins__][open]", [statistics], {})
result = found(target["database"]).read()
""",
    ),
    Escape("subclasses", "result = str(().__class__.__base__.__subclasses__())"),
    Escape("import_os", "import os\nresult = os.listdir('/')"),
    Escape("queue_of_modules", "import collections\nresult = collections._sys.modules['os'].popen('id').read()"),
]
"""Attacks through smolagents' interpreter with the default imports of `codact`. They set `result`, which may be text
without a secret, or fail with any error."""

CATEGORIES = {
    "files by their path": "read_data_folder read_config_file read_ssh_key read_other_workspace read_etc_shadow "
    "read_server_home",
    "`..` and other working folders": "read_dot_dot read_dot_dot_after_chdir",
    "lists of folders": "list_data_folder list_workspaces",
    "the root folder of a process in `/proc`": "read_proc_self_root read_proc_1_root read_proc_server_root",
    "the working folder of a process in `/proc`": "read_proc_server_cwd",
    "the environment of a process in `/proc`": "read_proc_server_environ read_proc_victim_environ "
    "read_proc_thread_environ environment_of_proc",
    "open files of a process in `/proc`": "read_proc_server_fd",
    "locks of other processes": "read_proc_locks",
    "memory of a process in `/proc`": "read_proc_server_maps read_proc_server_mem write_proc_server_mem",
    "the list of processes": "list_host_processes",
    "memory devices": "read_dev_mem read_dev_kmem read_dev_kmsg read_proc_kcore",
    "disks and other devices": "open_block_devices",
    "device nodes of its own": "make_device",
    "symbolic links": "symlink_out symlink_folder_out",
    "hard links": "hard_link_out",
    "renaming across the border": "rename_in rename_out",
    "folder descriptors": "open_by_folder_descriptor",
    "`open` as a system call": "openat2_system_call open_system_call",
    "file handles": "open_by_handle",
    "inherited descriptors": "inherited_descriptors",
    "descriptors without access that are opened again": "o_path_descriptor_reopened",
    "copies of folders": "copy_between_folders",
    "databases": "sqlite_of_the_server",
    "writing and truncating files": "write_outside append_to_database truncate_outside",
    "deleting": "unlink_outside remove_folder_outside",
    "creating folders and links": "make_folder_outside symlink_made_outside fifo_made_outside",
    "changing the libraries": "write_libraries write_site_packages write_read_only_folder",
    "changing the interpreter": "write_interpreter",
    "changing the system's folders": "write_usr write_etc",
    "settings of the kernel": "write_core_pattern write_sysrq write_uevent_helper write_own_oom_score",
    "mounting read-only folders writable": "remount_writable",
    "modes of files": "chmod_outside fchmod_of_library fchmodat2_outside",
    "owners of files": "chown_outside",
    "times of files": "utime_outside futimens_of_library",
    "extended attributes": "setxattr_outside setxattr_of_library removexattr_outside setxattrat_outside "
    "getxattr_outside listxattr_outside",
    "its own environment": "environment environment_of_c",
    "format strings": "environment_by_format_string popen_by_get_field format_string_environment get_field_popen "
    "get_field_open get_field_globals",
    "objects in memory": "secret_in_objects secret_in_own_memory",
    "frames": "secret_in_frames code_from_traceback_frame code_from_generator_frame",
    "`fork`": "fork forkpty fork_system_call multiprocessing",
    "`clone`": "clone_system_call clone_high_bits clone3_system_call",
    "threads with namespaces": "clone_thread_with_namespace",
    "`subprocess` and shells": "subprocess_run os_system os_popen libc_system libc_popen",
    "`posix_spawn`": "posix_spawn multiprocessing_spawn",
    "`exec`": "execve",
    "programs in memory": "execveat_of_memory",
    "dunders and subclasses": "popen_from_subclasses popen_from_builtins_of_a_function subclasses",
    "importlib": "import_by_loader import_os",
    "modules that allowed modules have imported": "queue_of_modules",
    "signal handlers": "signal_handler_runs_commands",
    "system calls of another ABI": "x32_open x32_fork x32_socket x32_execve",
    "unknown system calls": "negative_system_call future_system_call",
    "`ptrace`": "ptrace_attach_server ptrace_seize_victim ptrace_traceme",
    "memory of other processes": "process_vm_readv process_vm_writev",
    "mounts": "mount_proc mount_bind_root open_tree fsopen mount_setattr",
    "unmounting": "umount_proc umount_workspace",
    "another root folder": "chroot pivot_root",
    "new namespaces": "unshare_user unshare_mount",
    "namespaces of others": "setns_of_server setns_of_init",
    "io_uring": "io_uring",
    "BPF and performance counters": "bpf perf_event_open",
    "page faults in user space": "userfaultfd",
    "keys of the kernel": "keyctl add_key",
    "comparing processes": "kcmp",
    "modules of the kernel and restarts": "init_module reboot",
    "the log of the kernel": "kernel_log",
    "clock and host name": "set_clock set_hostname",
    "modes of the processor": "personality modify_ldt iopl",
    "accounting": "acct",
    "user ids": "setuid_root",
    "capabilities": "raise_capabilities",
    "outliving the server": "reset_parent_death_signal reset_parent_death_signal_high_bits",
    "`no_new_privs`": "reset_no_new_privileges",
    "weaker filters": "disable_seccomp permissive_seccomp_filter permissive_landlock_ruleset",
    "limits": "raise_memory_limit limit_files_of_victim limit_cpu_of_server",
    "typing into a terminal": "terminal_input_injection terminal_ioctl_on_standard_files",
    "signals": "kill_server kill_probe_server kill_victim kill_group_of_victim kill_everything kill_own_group "
    "tkill_victim tgkill_victim sigqueue_victim",
    "process descriptors": "pidfd_open_victim pidfd_getfd pidfd_send_signal",
    "signals by file events": "sigio_to_victim",
    "priority and processors of others": "priority_of_victim priority_of_user affinity_of_victim scheduler_of_victim "
    "io_priority_of_victim",
    "shared memory": "shared_memory_of_server remove_shared_memory_of_server posix_shared_memory_of_server",
    "message queues": "message_queue",
    "watching files": "watch_files notification_of_folder",
    "leases": "lease",
    "asynchronous I/O": "asynchronous_io",
    "TCP": "tcp_loopback tcp6_loopback tcp_listen socket_system_call socket_system_call_high_bits",
    "UDP": "udp_loopback",
    "Unix sockets": "unix_socket abstract_socket",
    "pairs of sockets": "datagram_to_abstract_socket_by_pair pair_connected_again_to_unix_socket inet_socket_by_pair "
    "many_socket_pairs",
    "raw sockets": "raw_socket ping_socket packet_socket",
    "sockets of other families": "netlink_socket vsock kernel_crypto_socket",
    "DNS and HTTP": "dns urllib",
}
"""The names of all attempts by category. `docs/sandbox.md` lists the categories."""

UNCONFINED = """
read_data_folder read_config_file read_ssh_key read_other_workspace read_dot_dot read_proc_self_root
read_proc_server_root read_proc_victim_environ list_data_folder list_workspaces list_host_processes symlink_out
symlink_folder_out hard_link_out open_by_folder_descriptor openat2_system_call o_path_descriptor_reopened
copy_between_folders write_outside append_to_database make_folder_outside remove_folder_outside write_read_only_folder
chmod_outside utime_outside fork fork_system_call clone_system_call clone_high_bits subprocess_run os_system os_popen
posix_spawn libc_system libc_popen multiprocessing popen_from_subclasses popen_by_get_field
popen_from_builtins_of_a_function import_by_loader signal_handler_runs_commands tcp_loopback udp_loopback tcp_listen
unix_socket abstract_socket datagram_to_abstract_socket_by_pair pair_connected_again_to_unix_socket netlink_socket
shared_memory_of_server watch_files pidfd_open_victim priority_of_victim kill_probe_server kill_victim
posix_shared_memory_of_server
""".split()  # noqa: SIM905
"""Attempts that get out of a process without a sandbox, without harm to anything but what the test has put outside."""
