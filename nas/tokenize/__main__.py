"""Count how many bytes of your text a token holds, at each size of vocabulary: a curve for what is priced per byte."""

from nas.terminal.parser import command
from nas.tokenize.request import TokenizeRequest


def tokenize(request: TokenizeRequest) -> None:
    """Count how many bytes of your own text a token holds, at each size of vocabulary.

    A byte-level BPE is trained on nine tenths of the text and counted on the tenth that it has not seen. Nothing is drawn at random: the same
    text gives the same files. 8k is 8,000; a power of two is written out, 8192.
    """
    from nas.tokenize.command import execute

    execute(request)


main = command(
    tokenize,
    "tokenize corpus.jsonl notes --out curve.yaml",
    "tokenize corpus.jsonl --vocabularies 4k,8k,16k,32768 --save-tokenizers tokenizers",
    "tokenize corpus.jsonl --tokenizer qwen/tokenizer.json --vocabularies 32k",
)
if __name__ == "__main__":
    main()
