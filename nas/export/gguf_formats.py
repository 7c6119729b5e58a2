"""Weight formats of GGUF files that `plas export --gguf` takes."""

#: Formats that the stack llama_bench writes, with their numbers as `general.file_type`; all but `f16` are called as their precision is.
FORMATS = {"f16": 1, "q8_0": 7, "q6_k": 18, "q5_k_m": 17, "q4_k_m": 15, "q4_0": 2, "mxfp4": 38}
