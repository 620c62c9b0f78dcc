"""The first program in the sandbox: it takes limits on itself and then becomes the candidate.

``python confine.py SETTINGS COMMAND...``: settings are a JSON object of ``limits``, the
``environment``, variables to ``keep`` of the present one and, started by root, a ``user``.
Nothing here can be undone by what runs afterwards: the limits are hard, the user has no rights, and
system calls that reach beyond files, threads and time are refused. Standard library only.
"""

import ctypes
import json
import os
import platform
import resource
import struct
import sys

DENIED = {  # memory that no limit counts, other processes, namespaces, the kernel's own machinery
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "shmget": (29, 194),
    "msgget": (68, 186), "semget": (64, 190), "userfaultfd": (323, 282), "ptrace": (101, 117),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "pidfd_getfd": (438, 438),
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "pivot_root": (155, 41),
    "clone3": (435, 435), "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    "bpf": (321, 280), "perf_event_open": (298, 241), "io_uring_setup": (425, 425),
    "open_by_handle_at": (304, 265), "kcmp": (312, 272),
}  # fmt: skip
"""System calls by name: their numbers on x86-64 and on ARM."""
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
LOAD, EQUAL, ABOVE, ANY_BIT, RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
DENIED_IF = [((56, 220), ANY_BIT, 0x7E020080), ((157, 167), EQUAL, 1)]
"""Calls that are refused by their first argument: ``clone`` with namespaces of its own, ``prctl``
that would let a process outlive its parent."""
ALLOW, KILL, FAIL = 0x7FFF0000, 0x80000000, 0x00050000
NO_SUCH_CALL = 38
X32 = 0x40000000
PR_SET_PDEATHSIG, PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, FILTER = 1, 38, 22, 2


def main() -> None:
    """Limit this process, forget who started it, become the command."""
    settings, command = json.loads(sys.argv[1]), sys.argv[2:]
    for name, most in settings["limits"].items():
        resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (most, most))
    if settings["user"]:
        os.setgroups([])
        os.setresgid(*[settings["user"]] * 3)
        os.setresuid(*[settings["user"]] * 3)
    refuse_calls()
    kept = {name: os.environ[name] for name in settings["keep"] if name in os.environ}
    os.execve(command[0], command, settings["environment"] | kept)


def refuse_calls() -> None:
    """Let the kernel refuse `DENIED` from now on, in this process and all that it starts."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_PDEATHSIG, 9, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
    if platform.machine() not in MACHINES:
        return
    column, machine = MACHINES[platform.machine()]
    refuse = (RETURN, 0, 0, FAIL | NO_SUCH_CALL)
    code = [(LOAD, 0, 0, 4), (EQUAL, 1, 0, machine), (RETURN, 0, 0, KILL), (LOAD, 0, 0, 0)]
    code += [(ABOVE, 0, 1, X32), (RETURN, 0, 0, KILL)]
    for numbers in DENIED.values():
        code += [(EQUAL, 0, 1, numbers[column]), refuse]
    for numbers, test, value in DENIED_IF:
        first = [(LOAD, 0, 0, 0), (EQUAL, 0, 3, numbers[column])]
        code += [*first, (LOAD, 0, 0, 16), (test, 0, 1, value), refuse]
    code.append((RETURN, 0, 0, ALLOW))
    packed = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(packed))
    if libc.prctl(PR_SET_SECCOMP, FILTER, ctypes.c_char_p(program), 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


if __name__ == "__main__":
    main()
