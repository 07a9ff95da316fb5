"""TypeScript's types of the contract can be compiled, and say what may be sent."""

from pathlib import Path

import pytest

from tests.clients.conftest import OPENAPI, Run

PROGRAM = """
import type { components, operations } from "./contract";

const body: components["schemas"]["VerifyRequest"] = { probe: { base64: "" }, reference: { base64: "" } };
export const form: operations["verify"]["requestBody"]["content"]["multipart/form-data"] = { probe: "" };
export function explain(problem: components["schemas"]["Problem"]): string {
  return `${problem.code}: ${problem.retry_after_seconds ?? body.probe.base64}`;
}
"""


@pytest.mark.timeout(600)
def test_the_types_of_the_contract_can_be_compiled(in_node: Run, tmp_path: Path) -> None:
    flags = ("--default-non-nullable=false", "--output", tmp_path / "contract.ts")
    in_node("openapi-typescript", OPENAPI, *flags)
    (tmp_path / "program.ts").write_text(PROGRAM)
    in_node("tsc", "--noEmit", "--strict", tmp_path / "program.ts")
