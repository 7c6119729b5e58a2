"""Log probabilities of every token at every position in vLLM; run by the Python that has vllm, which needs nothing else.

Reads jobs as JSON from standard input: folder, prompt, tokens, and what `vllm.LLM` takes besides. Writes logprobs.npy into each folder,
(positions, vocabulary) from the second token on, and the tokens that followed as said.json.
"""

import gc
import json
import os
import sys
from pathlib import Path

os.environ |= {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_ENABLE_V1_MULTIPROCESSING": "0", "VLLM_NO_USAGE_STATS": "1"}
#: vLLM 0.32's kernel for processors rotates LFM2's heads wrongly; compiled models, as in its own bench, do without that kernel.
PLAIN = {"custom_ops": ["all", "-rotary_embedding"]}


def run(job):
    """One model: its prompt, then greedily some tokens more."""
    import numpy as np
    import vllm

    folder = Path(job["folder"])
    engine = vllm.LLM(
        model=str(folder),
        skip_tokenizer_init=True,
        max_model_len=256,
        max_num_seqs=4,
        max_logprobs=-1,
        enforce_eager=True,
        enable_prefix_caching=False,
        compilation_config=PLAIN,
        **job["settings"],
    )
    sampling = vllm.SamplingParams(
        max_tokens=job["tokens"], ignore_eos=True, temperature=0.0, detokenize=False, logprobs=-1, prompt_logprobs=-1
    )
    (out,) = engine.generate([{"prompt_token_ids": job["prompt"]}], sampling, use_tqdm=False)
    positions = [*out.prompt_logprobs[1:], *out.outputs[0].logprobs]
    np.save(folder / "logprobs.npy", [[each[i].logprob for i in range(len(each))] for each in positions])
    (folder / "said.json").write_text(json.dumps([int(token) for token in out.outputs[0].token_ids]))


if __name__ == "__main__":
    from vllm.distributed import cleanup_dist_env_and_memory

    for each in json.load(sys.stdin):
        try:
            run(each)
        except Exception as error:  # the others go on; their test says this one's
            (Path(each["folder"]) / "error.txt").write_text(f"{type(error).__name__}: {error}")
        cleanup_dist_env_and_memory()
        gc.collect()
