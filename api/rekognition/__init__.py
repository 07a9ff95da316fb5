"""The operations of Amazon Rekognition about faces, for its clients: their signatures, shapes and errors."""
