// llama-logits MODEL THREADS < token ids > logits: every position's logits as 32-bit floats, position after position.
// Needs llama.h alone; ids are given as numbers, since exported GGUF files have no tokenizer.

#include "llama.h"

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <vector>

static int fail(const char * what) {
    fprintf(stderr, "llama-logits: %s\n", what);
    return 1;
}

int main(int argc, char ** argv) {
    if (argc != 3) {
        return fail("expected MODEL THREADS, and token ids on standard input");
    }
    std::vector<llama_token> ids{std::istream_iterator<llama_token>(std::cin), std::istream_iterator<llama_token>()};
    llama_backend_init();
    llama_model * model = llama_model_load_from_file(argv[1], llama_model_default_params());
    if (!model || ids.empty()) {
        return fail(model ? "expected token ids, got none" : "the model cannot be loaded");
    }
    const int n = ids.size(), vocabulary = llama_vocab_n_tokens(llama_model_get_vocab(model));
    llama_context_params params = llama_context_default_params();
    params.n_ctx = params.n_batch = params.n_ubatch = n;
    params.n_threads = params.n_threads_batch = atoi(argv[2]);
    llama_context * context = llama_init_from_model(model, params);
    if (!context) {
        return fail("no context can be made");
    }
    llama_batch batch = llama_batch_init(n, 0, 1);
    batch.n_tokens = n;
    for (int i = 0; i < n; ++i) {
        batch.token[i] = ids[i];
        batch.pos[i] = i;
        batch.n_seq_id[i] = 1;
        batch.seq_id[i][0] = 0;
        batch.logits[i] = 1;
    }
    if (llama_decode(context, batch)) {
        return fail("the tokens cannot be decoded");
    }
    for (int i = 0; i < n; ++i) {
        fwrite(llama_get_logits_ith(context, i), sizeof(float), vocabulary, stdout);
    }
    llama_batch_free(batch);
    llama_free(context);
    llama_model_free(model);
    return 0;
}
