"""Calls every method of compreface-sdk, and prints what it returned as JSON."""

import json
import sys
from pathlib import Path

from compreface import CompreFace

address, recognition_key, detection_key, verification_key, one, another, two = sys.argv[1:]
domain, _, port = address.rpartition(":")
server = CompreFace(domain, port, {"limit": 0, "det_prob_threshold": 0.5, "status": True})
recognition = server.init_face_recognition(recognition_key)
detection = server.init_face_detection(detection_key)
verification = server.init_face_verification(verification_key)
faces, subjects = recognition.get_face_collection(), recognition.get_subjects()
said = {}

said["added"] = subjects.add("Grace Hopper")
said["taken"] = subjects.add("grace hopper")
said["face"] = faces.add(one, "Ada", {"det_prob_threshold": 0.8})
image_id = said["face"].get("image_id")
said["second face"] = faces.add(Path(another).read_bytes(), "Ada")
said["two faces"] = faces.add(two, "Ada")
said["no photo"] = faces.add(b"this is no photo", "Ada")
said["faces"] = faces.list()
said["subjects"] = subjects.list()
said["recognized"] = recognition.recognize(
    another, {"prediction_count": 2, "face_plugins": "landmarks,age,calculator", "status": True}
)
said["with the options of the start"] = recognition.recognize(one)
said["verified face"] = faces.verify(another, image_id)
said["verified unknown"] = faces.verify(another, "nothing")
said["detected"] = detection.detect(two, {"face_plugins": "landmarks", "limit": 1})
said["wrong service"] = server.init_face_detection(recognition_key).detect(one)
said["no such key"] = server.init_face_detection("00000000-0000-4000-8000-000000000000").detect(one)
said["verified"] = verification.verify(one, another, {"status": True})
said["renamed"] = subjects.update("ada", "Grace Hopper")
said["renamed nobody"] = subjects.update("nobody", "Bob")
said["deleted face"] = faces.delete(image_id)
said["deleted unknown"] = faces.delete(image_id)
said["deleted faces"] = faces.delete_all("grace hopper")
said["deleted nobody"] = subjects.delete("Grace Hopper")
said["left"] = subjects.list()
subjects.add("Alan")
said["deleted subject"] = subjects.delete("alan")
subjects.add("Alan")
said["deleted all"] = subjects.delete_all()
print(json.dumps(said))
