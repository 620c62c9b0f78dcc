"""Attacks on the referee: what each tries, as a program that says on standard error how it went."""

TALK = """
import json, os, sys, time
def hear(): return json.loads(sys.stdin.readline())
def raw(line): print(line, flush=True)
def say(**words): raw(json.dumps(words))
def decide(**words): say(type="decision", **words)
def give(*rows): decide(assignments={jobs[0]: list(rows)})
START = {"from": 1, "gpus": 1}
"""
HELLO = TALK + "hear(); say(type='hello', protocol=1)\n"
READY = HELLO + "started = hear(); say(type='ready')\n"
FIRST = READY + "step = hear()\njobs = [job['name'] for job in step['arrivals']]\n"

SLURP = """
def slurp(path):
    try:
        return open(path, errors="replace").read()
    except OSError:
        return ""
"""
PRIES = {
    "reads what was scored before": "os.listdir({folder!r})",
    "writes a result itself": "open({folder!r} + '/score.json', 'a')",
    "reads the seeds": "open({secret!r}).read()",
    "reads the package's answers": "open({package!r} + '/instances/best_known.json').read()[2]",
    "reads the benchmark records": "os.listdir({package!r} + '/../benchmarks')",
    "patches a module of the referee": "open({package!r} + '/kernel/__init__.py', 'a')",
    "rewrites its own file": "os.chmod(__file__, 0o777) or open(__file__, 'a')",
    "reads other processes' environment": (
        "[n for n in os.listdir('/proc') if {word!r} in slurp(f'/proc/{{n}}/environ')][0]"
    ),
    "reads other processes' words": (
        "[n for n in os.listdir('/proc') if 'pytest' in slurp(f'/proc/{{n}}/cmdline')][0]"
    ),
    "reads another process's memory": "open('/proc/{victim}/mem', 'rb')",
    "kills another process": "os.kill({victim}, 9)",
    "kills its parent's parents": "[os.kill(n, 0) for n in {ancestors}]",
    "opens the network": "__import__('socket').create_connection(('127.0.0.1', {port}), 2)",
    "leaves word for its next run": "open('/tmp/{word}').read()",
    "writes outside its folder": "open('/var/tmp/{word}', 'w')",
    "shares memory that no limit counts": "os.memfd_create('x')",
    "asks whether another run has read a file": (
        "open(os.__file__).read() and "
        "os.preadv(os.open(os.__file__, os.O_RDONLY), [bytearray(1)], 0, os.RWF_NOWAIT)"
    ),
    "makes the next run's reading slow": (
        "os.posix_fadvise(os.open(os.__file__, os.O_RDONLY), 0, 0, os.POSIX_FADV_DONTNEED)"
    ),
}
"""What must fail: each is evaluated, and says ``worked`` or ``stopped``."""

GREED = {
    "forks": (
        """
def fork():
    if os.fork() == 0: time.sleep(30)
    return 1
found = 0
try:
    while found < 100: found += fork()
except OSError: pass
""",
        40,
    ),
    "takes memory": (
        """
found = []
try:
    while len(found) < 900: found.append(bytearray(1 << 20))
except MemoryError: pass
found = len(found)
""",
        600,
    ),
    "fills the disk": (
        """
found = 0
try:
    for folder in ("/tmp", "/dev/shm") * 8:
        for k in range(8):
            with open(f"{folder}/{found}-{k}", "wb") as file:
                for _ in range(8): found += file.write(bytes(1 << 20)) >> 20
except OSError: pass
""",
        130,
    ),
    "opens files": (
        """
found = []
try:
    while len(found) < 500: found.append(open("/dev/null"))
except OSError: pass
found = len(found)
""",
        70,
    ),
}
"""Programs that count what they got, and how much that may be."""

LIES = {
    "answers before it is asked": (
        TALK + 'raw(\'{"type":"hello","protocol":1}\\n{"type":"ready"}\' + \'\\n{}\' * 9)\n'
        "time.sleep(60)",
        "wrote a line before it was asked",
    ),
    "answers out of order": (TALK + "hear(); say(type='ready')", "answered with 'ready'"),
    "answers for another slot": (FIRST + "decide(slot=99)", "slot 99"),
    "decides of a job that never came": (FIRST + "jobs = ['j9']; give(START)", "has not arrived"),
    "says what it is worth": (FIRST + "decide(objective=0)", "unknown key"),
    "says a key twice": (FIRST + """raw('{"type":"decision","slot":1,"slot":1}')""", "twice"),
    "prints a result": ("print('{\"combined_score\": 1.0}')", "answered with None"),
    "is silent": ("time.sleep(60)", "ran for more than 4 s"),
    "hangs in its start": (
        TALK + "hear(); time.sleep(3); say(type='hello', protocol=1); hear(); time.sleep(60)",
        "start: ran for more than 4 s",
    ),
    "sleeps in a step": (FIRST + "time.sleep(60)", "gave no answer within 2 s"),
    "sleeps a little, always": (
        READY + "while True: step = hear(); time.sleep(0.4); decide(wake=step['slot'] + 1)",
        "ran for more than 4 s",
    ),
    "dies": (FIRST + "sys.exit('out of ideas')", "out of ideas"),
    "gives NaN": (FIRST + "give({**START, 'gpus': float('nan')})", "no JSON"),
    "gives infinity": (FIRST + "decide(wake=float('inf'))", "no JSON"),
    "gives 1e999": (FIRST + """raw('{"type":"decision","wake":1e999}')""", "no later slot"),
    "gives 10^400": (FIRST + "give({**START, 'gpus': 10**400})", "must be an integer"),
    "gives 10^400 slots": (FIRST + "give({'from': 10**400, 'gpus': 1})", "must be a slot"),
    "wakes in 10^400": (READY + "hear(); decide(wake=10**400); hear()", "ended"),
    "gives 10^5000": (FIRST + """raw('{"wake":1' + '0' * 5000 + '}')""", "no JSON"),
    "nests deeply": (FIRST + "raw('[' * 400000)", "no JSON"),
    "nests rows": (
        FIRST + "row = START\nfor _ in range(500): row = {'from': 1, 'gpus': row}\ngive(row)",
        "must be an integer of at least 1",
    ),
    "gives overlapping rows": (FIRST + "give(START, START)", "(3)|row|runs already"),
    "takes more than there is": (FIRST + "give({**START, 'gpus': 10**6})", "GPUs|exit code 0"),
    "takes it in the past": (
        READY + "hear(); decide(wake=3); hear()\njobs = ['j1']; give(START)",
        "in the past|has not arrived",
    ),
    "fills the pipe with lines": (READY + "hear()\nwhile True: print('{}')", "answered with None"),
    "fills the pipe with one line": (
        READY + "hear()\nwhile True: sys.stdout.write('x' * 65536)",
        "more than 1000000 bytes",
    ),
    "fills the error stream": (
        READY + "hear()\nwhile True: sys.stderr.write('x' * 65536)",
        "gave no answer within 2 s",
    ),
    "names too many jobs": (FIRST + "decide(admitted=['x' * 10] * 50000)", "has not arrived"),
}
"""Programs and what the reason says of them."""
