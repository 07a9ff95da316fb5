"""The formats of a batch's body and answer: NDJSON, arrays and Arrow."""
