"""Makes tokenizers.json: small tokenizers and what the Python package `tokenizers` (0.23) makes of
texts with them; needs sentencepiece, too. usage: make_tokenizers.py > tokenizers.json"""

import json
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
GPT4O_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
GPT4O = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + GPT4O_ENDING +
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + GPT4O_ENDING +
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")

CORPUS = ["Once upon a time, there was a little girl who loved to play in the garden.",
          "The quick brown fox jumps over the lazy dog's back, 123 times in 2024!",
          "She'll say: it isn't what they've seen.   Spaces   and\n\nnew lines\tcount.",
          "Ein schöner Tag für Änderungen. Où est la bibliothèque ? 東京は日本の首都です。",
          "<|im_start|>user\nhello<|im_end|>\n"] * 4

TEXTS = ["", " ", "Hello", "hello world", " hello  world ", "Once upon a time, there was",
         "I'll take 12345 apples & 6.75 pears, they'VE said.", "tabs\tand\r\nlines\n\n\n end  ",
         "naïve café — “quoted” … ﬁne ① ½", "東京は日本の首都です。", "emoji 🙂👩‍👩‍👧 e\u0301 Å \u212b",
         "<|im_start|>user\nhi <|im_end|>\nx", "a<|pad|> b <|pad|>", "Ⅷ ٣٤ \u00a0nbsp\u3000wide",
         "под ёлкой", "_under_score__ #tag @x", "ÄÖÜ ǅ ſ K"]


def byte_level(name, steps, normalizer=None, post=None, ignore_merges=False):
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges))
    if normalizer:
        tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = steps
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=420, show_progress=False, special_tokens=["<|im_start|>", "<|im_end|>"],
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    tokenizer.train_from_iterator(CORPUS, trainer)
    from tokenizers import AddedToken
    tokenizer.add_tokens([AddedToken("<|pad|>", lstrip=True, rstrip=True, normalized=False)])
    if post:
        tokenizer.post_processor = post
    return name, tokenizer


def split(pattern):
    return pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(pattern), "isolated"),
                                    pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def byte_fallback_bpe():
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(),
                                           decoders.Strip(" ", 1, 0)])
    bytes_ = [f"<0x{i:02X}>" for i in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=380, show_progress=False, limit_alphabet=30,
                                  special_tokens=["<unk>", "<s>", "</s>"] + bytes_)
    tokenizer.train_from_iterator([t.replace(" ", "▁") for t in CORPUS], trainer)
    # Bytes are ordinary tokens of published tokenizers, not special ones.
    description = json.loads(tokenizer.to_str())
    description["added_tokens"] = description["added_tokens"][:3]
    tokenizer = Tokenizer.from_str(json.dumps(description))
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>",
                                                             special_tokens=[("<s>", 1), ("</s>", 2)])
    return "byte-fallback", tokenizer


def unigram(name, normalizer, pre, fallback):
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre
    tokenizer.decoder = decoders.Metaspace() if not fallback else decoders.Sequence(
        [decoders.ByteFallback(), decoders.Metaspace()])
    special = ["<unk>", "<s>", "</s>"]
    trainer = trainers.UnigramTrainer(vocab_size=150, show_progress=False, unk_token="<unk>", special_tokens=special)
    tokenizer.train_from_iterator(CORPUS[:4], trainer)
    if fallback:
        description = json.loads(tokenizer.to_str())
        description["model"]["byte_fallback"] = True
        description["model"]["vocab"] += [[f"<0x{i:02X}>", -20.0 - i / 64] for i in range(256)]
        tokenizer = Tokenizer.from_str(json.dumps(description))
    return name, tokenizer


def precompiled():
    """A unigram tokenizer whose normalizer is a charsmap that sentencepiece compiles of a few rules."""
    rules = [("FB01", "66 69"), ("41", "61"), ("C4", "61 65"), ("65 301", "E9"), ("2460", "31"), ("3000", "20"),
             ("1F642", "3A 29"), ("201C", "22"), ("201D", "")]
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/rules.tsv", "w") as file:
            file.writelines(f"{source}\t{target}\n" for source, target in rules)
        with open(folder + "/corpus.txt", "w") as file:
            file.writelines(line.replace("\n", " ") + "\n" for line in CORPUS)
        sentencepiece.SentencePieceTrainer.train(input=folder + "/corpus.txt", model_prefix=folder + "/m",
                                                 vocab_size=120, normalization_rule_tsv=folder + "/rules.tsv",
                                                 hard_vocab_limit=False, minloglevel=2)
        model = sentencepiece_model_pb2.ModelProto()
        with open(folder + "/m.model", "rb") as file:
            model.ParseFromString(file.read())
    return unigram("precompiled", normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap),
                   pre_tokenizers.Metaspace(), False)


CASES = [
    byte_level("gpt-2", pre_tokenizers.ByteLevel(add_prefix_space=False)),
    byte_level("prefix-space", pre_tokenizers.ByteLevel(add_prefix_space=True)),
    byte_level("smollm", pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                                  pre_tokenizers.ByteLevel(add_prefix_space=False)])),
    byte_level("llama-3", split(LLAMA3), ignore_merges=True,
               post=processors.Sequence([processors.ByteLevel(trim_offsets=False),
                                         processors.TemplateProcessing(single="<|im_start|> $A",
                                                                       special_tokens=[("<|im_start|>", 0)])])),
    byte_level("qwen2", split(QWEN2), normalizer=normalizers.NFC()),
    byte_level("gpt-4o", split(GPT4O)),
    byte_fallback_bpe(),
    unigram("unigram", normalizers.NFKC(), pre_tokenizers.Metaspace(), False),
    unigram("unigram-bytes", normalizers.Sequence([normalizers.NFKD(), normalizers.Lowercase(),
                                                   normalizers.Replace(Regex(" {2,}"), " ")]),
            pre_tokenizers.Sequence([pre_tokenizers.Punctuation(),
                                     pre_tokenizers.Metaspace(prepend_scheme="first", split=False)]), True),
    unigram("white-space", normalizers.NFD(), pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                                                      pre_tokenizers.Metaspace()]), False),
    precompiled(),
    unigram("words", normalizers.Sequence([normalizers.NFKC(), normalizers.Strip()]), pre_tokenizers.Whitespace(), False),
]

print("[")
for i, (name, tokenizer) in enumerate(CASES):
    cases = []
    for text in TEXTS:
        ids = tokenizer.encode(text).ids
        cases.append({"text": text, "ids": ids, "decoded": tokenizer.decode(ids)})
    entry = {"name": name, "tokenizer": json.loads(tokenizer.to_str()), "cases": cases}
    print(json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + ("," if i + 1 < len(CASES) else ""))
print("]")
