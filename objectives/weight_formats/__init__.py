"""Weight formats as engines write them: the types of their tensors by class, in `formats.yaml`, and bytes per weight of rows.

It knows no architecture and no scenario.
"""
