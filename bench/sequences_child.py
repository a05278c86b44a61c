"""From a text file to the first epoch in a child process; CPU seconds as one line of JSON.

Prints when imports were done and when the first pass could begin, both since the process started.
Kernels come from disk: two sentences are learned from, so that the pass itself need load nothing.
"""

import time

import sequences_corpus as corpus
import sequences_passes as ours

from hopefear.data.token_files import read_sentences
from hopefear.tasks.tag.task import dataset

if __name__ == "__main__":
    import json
    import sys

    imports = time.process_time()
    data = dataset(read_sentences(sys.argv[1]).sentences, corpus.FEATURES)
    ours.warm(data, "perceptron")
    print(json.dumps([imports, time.process_time()]))
