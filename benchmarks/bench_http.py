"""The whole stack over loopback: one row, ten thousand rows, and training from JSON."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from http.client import HTTPConnection
from pathlib import Path
from statistics import median

import orjson

from benchmarks import servers
from benchmarks.load import measure_rate, name_generator
from benchmarks.measure import Bound, Findings, Options, Result, compare, race
from benchmarks.ours import make_fit
from benchmarks.problems import Problem, from_matrix, make_numbers

TRAINED_ON = 10_000
ROUNDS = 5
PATIENCE = 600.0
MLSERVER = "MLServer with scikit-learn"
INFER = "/v2/models/tree/infer"
PREDICT = "/models/numbers/predict"


def one_row(options: Options) -> Findings:
    """Requests per second for one row: ours, a view that does nothing, MLServer; one worker each, in turns."""
    known = make_posted(options, TRAINED_ON)
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        ports = start(stack, Path(place), known, options, bare=True)
        post(ports["ours"], "/train", write_training(known, options.depth), 201)
        loads = {
            "ours": (PREDICT, write_rows(known, 1)),
            "bare": ("/", write_rows(known, 1)),
            MLSERVER: (INFER, write_tensor(known, 1)),
        }
        rates: dict[str, list[float]] = {name: [] for name in ports}
        for _ in range(1 if options.quick else ROUNDS):
            for name, port in ports.items():
                rates[name].append(measure_rate(port, *loads[name], options.load_seconds))
    rate = {name: median(values) for name, values in rates.items()}
    work = f"POST /predict, 1 row, 1 worker ({name_generator(options.load_seconds)})"
    bare = "bare Flask view, same gunicorn: share of its rate"
    return Findings(
        [
            _judge_rate(work, bare, rate["ours"], rate["bare"], 0.85),
            _judge_rate(work, f"{MLSERVER}: times its rate", rate["ours"], rate.get(MLSERVER), 1.5),
        ]
    )


def _judge_rate(work: str, against: str, ours: float, theirs: float | None, least: float) -> Result:
    note = "not installed" if theirs is None else ""
    return Result(work, against, ours, theirs, "/s", theirs and ours / theirs, Bound("at least", least), note)


def many_rows(options: Options) -> Findings:
    """Ten thousand rows in one body."""
    known = make_posted(options, TRAINED_ON)
    rows = len(known.answers)
    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        ports = start(stack, Path(place), known, options, bare=False)
        post(ports["ours"], "/train", write_training(known, options.depth), 201)
        bodies = {"ours": (PREDICT, write_rows(known, rows)), MLSERVER: (INFER, write_tensor(known, rows))}
        contestants = {name: _make_post(ports[name], *bodies[name], 200) if name in ports else None for name in bodies}
        _check_answers({name: contestant() for name, contestant in contestants.items() if contestant}, rows)
        work = f"POST /predict, {known.shape} as JSON"
        return Findings(compare(work, contestants, {MLSERVER: 2.0}, options))


def _check_answers(answers: Mapping[str, bytes], rows: int) -> None:
    """Raises RuntimeError where a server did not predict every row: it would be fast for the wrong reason."""
    for name, content in answers.items():
        answer = orjson.loads(content)
        predicted = answer["predictions"] if name == "ours" else answer["outputs"][0]["data"]
        if len(predicted) != rows:
            raise RuntimeError(f"{name} predicted {len(predicted)} of {rows} rows")


def training(options: Options) -> Findings:
    """Training from JSON, over what parsing and learning alone take in process."""
    known = make_posted(options, 100_000)
    body = write_training(known, options.depth)
    learn_alone = make_fit(known, options.depth)

    def parse_and_learn() -> None:
        orjson.loads(body)
        learn_alone()

    with tempfile.TemporaryDirectory() as place, ExitStack() as stack:
        port = start(stack, Path(place), known, options, bare=False, mlserver=False)["ours"]
        contestants = {"ours": _make_post(port, "/train", body, 201), "alone": parse_and_learn}
        contestants["ours"]()
        seconds = race(contestants, options.repeats)
    ours, alone = seconds["ours"], seconds["alone"]
    work, against = f"POST /train, {known.shape} as JSON", "orjson parse + learning in process: times their time"
    return Findings([Result(work, against, ours, alone, "s", ours / alone, Bound("at most", 1.5))])


def make_posted(options: Options, rows: int) -> Problem:
    """Numbers of four decimals, as people post them; learnt from what the server will read."""
    made = make_numbers(options.seed, options.limit(rows), options.columns)
    return from_matrix(made.matrix.round(4, out=made.matrix), made.answers)


def write_training(known: Problem, depth: int) -> bytes:
    """The body of POST /train, by columns."""
    columns = {column.name: column.values.tolist() for column in known.columns}
    names = [known.target.classes[answer] for answer in known.answers]
    data = {"columns": columns | {"target": names}}
    return orjson.dumps({"name": "numbers", "target": "target", "parameters": {"max_depth": depth}, "data": data})


def write_rows(known: Problem, rows: int) -> bytes:
    """The body of POST /predict, by rows."""
    return orjson.dumps({"data": {"rows": known.matrix[:rows].tolist()}})


def write_tensor(known: Problem, rows: int) -> bytes:
    """The same for the Open Inference Protocol."""
    tensor = {"name": "x", "shape": [rows, known.matrix.shape[1]], "datatype": "FP64"}
    return orjson.dumps({"inputs": [tensor | {"data": known.matrix[:rows].ravel().tolist()}]})


def start(
    stack: ExitStack, place: Path, known: Problem, options: Options, *, bare: bool, mlserver: bool = True
) -> Mapping[str, int]:
    """Start the servers, which end with the stack; the port of each, MLServer's only where it is installed."""
    folders = {name: place / name for name in ("ours", "bare", "mlserver")}
    for folder in folders.values():
        folder.mkdir()
    ports = {"ours": stack.enter_context(servers.serve_ours(folders["ours"]))}
    if bare:
        ports["bare"] = stack.enter_context(servers.serve_bare(folders["bare"]))
    if mlserver and servers.MLSERVER.exists():
        serving = servers.serve_mlserver(folders["mlserver"], known, options.depth)
        ports[MLSERVER] = stack.enter_context(serving)
    return ports


def _make_post(port: int, path: str, body: bytes, status: int) -> Callable[[], bytes]:
    return lambda: post(port, path, body, status)


def post(port: int, path: str, body: bytes, status: int) -> bytes:
    """The answer's body; raises RuntimeError for another status."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        content = response.read()
        if response.status != status:
            raise RuntimeError(f"{path} answered {response.status}: {content[:500].decode(errors='replace')}")
        return content
    finally:
        connection.close()


CASES = {"http-one-row": one_row, "http-rows": many_rows, "http-train": training}
