"""What every error response must be like."""

import httpx

PROBLEM_KEYS = {"type", "title", "status", "code", "detail", "request_id"}


def expect(response: httpx.Response, status: int, code: str) -> dict:
    problem = response.json()
    assert (response.status_code, problem["code"]) == (status, code), problem
    assert response.headers["content-type"] == "application/problem+json"
    assert problem.keys() >= PROBLEM_KEYS
    assert problem["status"] == status
    assert problem["request_id"] == response.headers["x-request-id"]
    return problem
