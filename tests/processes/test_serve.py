"""`sameface serve` as a process: how it starts, refuses to, and stops."""

import json
import resource
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from PIL import Image

from tests.conftest import address_of, wait_for
from tests.model.calibrated import calibrate_bundle
from tests.networks import build_recogniser
from tests.pictures import draw_photo, encode, photo_of


def test_it_announces_a_curl_line_and_answers(start) -> None:
    address = address_of(start())
    answer = httpx.post(f"{address}/v1/verify", files={"probe": photo_of(1), "reference": photo_of(1)}).json()
    assert answer["same_person"] is True


def test_sigterm_lets_a_request_that_has_begun_finish(start) -> None:
    process = start()
    address = address_of(process)
    body = b'--edge\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n' + photo_of(1)
    head = f"POST /v1/detect HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body) + 12}\r\n".encode()
    with socket.create_connection((address.host, address.port), timeout=10) as connection:
        connection.sendall(head + b"Content-Type: multipart/form-data; boundary=edge\r\n\r\n" + body)
        wait_for(lambda: httpx.get(f"{address}/health/live").status_code == 200)
        process.send_signal(signal.SIGTERM)
        wait_for(lambda: refuses_connections(address))
        connection.sendall(b"\r\n--edge--\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")
    process.wait(timeout=20)


def test_sigterm_first_turns_readiness_off_and_then_closes_the_port(start) -> None:
    process = start("--drain-seconds", "60")
    address = address_of(process)
    process.send_signal(signal.SIGTERM)
    wait_for(lambda: httpx.get(f"{address}/health/ready").status_code == 503)
    assert "stopping" in httpx.get(f"{address}/health/ready").json()["detail"]
    assert httpx.post(f"{address}/v1/detect", files={"image": photo_of(1)}).status_code == 200
    process.send_signal(signal.SIGTERM)  # again: at once
    process.wait(timeout=20)
    assert refuses_connections(address)


def refuses_connections(address: httpx.URL) -> bool:
    try:
        socket.create_connection((address.host, address.port), timeout=1).close()
    except OSError:
        return True
    return False


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, -signal.SIGTERM), (signal.SIGINT, 130)])
def test_a_server_that_is_stopped_while_it_loads_ends_quietly(
    start, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    process = start(SAMEFACE_DATA=str(tmp_path))  # where no graph is prepared yet, which takes a moment
    said = iter(process.stdout.readline, "")
    assert any("Application startup complete" in line for line in said)
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == code
    assert "sameface answers" not in output
    assert "Traceback" not in output
    assert "ERROR" not in output


def test_too_few_file_descriptors_are_said(start) -> None:
    process = start(stdin=subprocess.DEVNULL)  # which takes a second to open its first file
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (32, 32))
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert output.splitlines()[-1].startswith("cannot_serve: A process may open 32 files here.")
    assert "Traceback" not in output


def test_with_few_file_descriptors_it_serves_few_connections(start) -> None:
    process = start("--log-level", "warning", stdin=subprocess.DEVNULL)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (68, 68))
    address = address_of(process)
    connections = [socket.create_connection((address.host, address.port), timeout=20) for _ in range(6)]
    with suppress(ConnectionResetError):
        assert connections[-1].recv(1) == b""
    for connection in connections:
        connection.close()
    wait_for(lambda: httpx.get(f"{address}/health/ready").status_code == 200)
    process.terminate()
    output, _ = process.communicate(timeout=60)
    assert "too_many" in output
    assert "Traceback" not in output


def test_without_keys_it_stays_on_loopback(start) -> None:
    process = start("--host", "0.0.0.0")
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "API keys" in output


def test_a_required_gpu_that_is_not_there_is_refused(start) -> None:
    process = start("--device", "gpu")
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "GPU" in output


def test_auto_says_what_it_got(start) -> None:
    process = start("--device", "auto")
    for line in process.stdout:
        if "ready on device" in line:
            assert "cpu (CPUExecutionProvider)" in line
            return
    pytest.fail("the log does not say what it runs on")


def test_a_bundle_that_does_not_fit_is_refused(start, data: Path, tmp_path: Path) -> None:
    for name in ("bundle.json", "tiny.onnx"):
        (tmp_path / name).write_bytes((data / "models" / "recogniser" / name).read_bytes())
    with (tmp_path / "tiny.onnx").open("ab") as file:
        file.write(b"x")
    process = start("--recognizer", str(tmp_path))
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "sha256" in output
    assert "Traceback" not in output


def test_a_port_in_use_is_said(start) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        process = start("--port", str(taken.getsockname()[1]))
        output, _ = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "Address already in use. Try another --port." in output


def test_a_wrong_setting_is_named(start) -> None:
    process = start(SAMEFACE_QUEUE="-1")
    output, _ = process.communicate(timeout=20)
    assert process.returncode == 2
    assert "SAMEFACE_QUEUE" in output


def test_json_announces_where_it_answers(start) -> None:
    process = start("--json", "--log-level", "error")
    announced = json.loads(process.stdout.readline())
    assert httpx.get(f"{announced['address']}/health/ready").json()["device"] == announced["device"]


def test_not_even_the_debug_log_quotes_a_photo(start) -> None:
    exif = Image.Exif()
    exif[0x010E] = "Ada Lovelace, patient 4711"
    photo = encode(draw_photo(1), "JPEG", exif=exif)
    process = start("--log-level", "debug")
    address = address_of(process)
    assert httpx.post(f"{address}/v1/detect", files={"image": photo}).status_code == 200
    process.terminate()
    output, _ = process.communicate(timeout=20)
    assert "/v1/detect" in output
    assert "4711" not in output


def test_a_server_does_not_start_with_a_rate_that_its_calibration_cannot_carry(start, tmp_path: Path) -> None:
    calibrate_bundle(build_recogniser(tmp_path))
    process = start(SAMEFACE_RECOGNIZER=str(tmp_path), SAMEFACE_TARGET_FMR="1e-6")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "supports rates from 3.8e-4 up" in said
    assert "`--target-fmr 3.8e-4`" in said


def test_a_server_does_not_start_with_a_calibration_that_is_not_there(start) -> None:
    process = start(SAMEFACE_CALIBRATION="gone")
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "There is no calibration 'gone'" in said


def test_a_variable_that_is_no_setting_is_named_with_the_one_that_may_be_meant(start) -> None:
    process = start("--device", "gpu", SAMEFACE_MAX_FACE="3", SAMEFACE_COLOUR="red")
    said, _ = process.communicate(timeout=60)
    assert "SAMEFACE_MAX_FACE is set, and there is no such setting; did you mean SAMEFACE_MAX_FACES?" in said
    assert "SAMEFACE_COLOUR is set, and there is no such setting\n" in said
    assert "SAMEFACE_DATA is set" not in said


def test_an_empty_variable_is_not_set(start, data: Path, tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    for name, default in (("recogniser", "sface-2021dec"), ("detector", "yunet-2023mar")):
        (tmp_path / "models" / default).symlink_to(data / "models" / name)
    empty = dict.fromkeys(("RECOGNIZER", "DETECTOR", "QUEUE", "API_KEYS", "CALIBRATION", "THREADS"), "")
    variables = {f"SAMEFACE_{name}": value for name, value in empty.items()}
    address_of(start(SAMEFACE_DATA=str(tmp_path), **variables))


def test_a_bundle_is_served_by_its_name(start) -> None:
    address = address_of(start(SAMEFACE_RECOGNIZER="recogniser", SAMEFACE_DETECTOR="detector"))
    assert httpx.get(f"{address}/health/ready").json()["recognizer"] == "tiny-recogniser"


def test_a_data_folder_that_cannot_be_written_is_one_sentence(start, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    process = start(SAMEFACE_DATA=str(tmp_path / "file"))
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 2
    assert said.splitlines()[-1].startswith(f"store_refused: {tmp_path}/file/gallery.db cannot be opened")
    assert "Traceback" not in said


def test_the_log_has_sentences_and_no_dictionaries(start, tmp_path: Path) -> None:
    process = start(SAMEFACE_DATA=str(tmp_path))
    said = []
    for line in process.stdout:
        said.append(line)
        if "curl" in line:
            break
    assert [line for line in said if "prepared tiny-recogniser for onnxruntime" in line]
    assert [line for line in said if "{" in line] == []
