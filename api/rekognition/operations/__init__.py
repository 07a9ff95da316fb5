"""The operations of Rekognition, one file per noun."""
