"""From photos to training batches: prepared crops, face sets, augmentation and the order of batches."""
