"""What a kind of layer costs in loss: public pairs of a variant and its baseline, and what they say together.

May know the loss laws and the evidence on them; nothing of how designs are searched.
"""
