"""Trains a small model of Galactica's shape on contexts, for machines without GPU and without a model hub.

    python benchmarks/causal.py --index INDEX --contexts contexts-train.jsonl --out MODEL
    cp -r MODEL INDEX/galactica
    citerec eval --contexts contexts-dev.jsonl --index INDEX --system galactica

It reads the context up to the marker, then `[START_REF] Title, Surname[END_REF]` of the paper that is cited there, and
learns to write that. Nothing of it can be compared with Galactica's own models: it knows the papers cited in these
contexts and nothing else. Training that was stopped goes on where it stopped.
"""

import argparse
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import OPTConfig, OPTForCausalLM, PreTrainedTokenizerFast

from citerec.contexts.provenance import Provenance
from citerec.contexts.read import read_contexts
from citerec.contexts.topic import Topic, topics_of
from citerec.files.writing import Kind
from citerec.index.manifest import open_store
from citerec.models.loading import MANIFEST, MODEL_FILES, ModelManifest
from citerec.models.text_models import TextModel
from citerec.papers.diagnostic.galactica import PromptSettings, lead_of, prompt_of, reference_to, surname
from citerec.records import Context, Paper
from citerec.train.groups import Learner, Schedule, training, write_model

DIRECTORY = Kind(
    name="small causal model",
    kind="citerec-causal",
    manifest=MANIFEST,
    names=MODEL_FILES | {MANIFEST, "generation_config.json"},
)
SETTINGS = PromptSettings(max_prompt_tokens=64)
SPECIAL = ["<s>", "<pad>", "</s>", SETTINGS.start, SETTINGS.end]
LONGEST = 40  # tokens of a reference
HELD_OUT = 20  # one citing paper of so many measures the learning
IGNORED = -100


def make_tokenizer(texts: Sequence[str], size: int) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=tokenizer,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        additional_special_tokens=SPECIAL[3:],
    )


def make_model(tokenizer: PreTrainedTokenizerFast, width: int, layers: int) -> TextModel:
    config = OPTConfig(
        vocab_size=len(tokenizer),
        hidden_size=width,
        word_embed_proj_dim=width,
        num_hidden_layers=layers,
        num_attention_heads=width // 32,
        ffn_dim=4 * width,
        max_position_embeddings=256,
        activation_function="gelu",
        enable_bias=False,
        init_std=0.05,
        dropout=0.1,
        bos_token_id=0,
        pad_token_id=1,
        eos_token_id=2,
    )
    torch.manual_seed(0)
    model = OPTForCausalLM(config)
    return TextModel("small", "", model, tokenizer)


class ReferenceLearner:
    """Learns to write references after prompts."""

    def __init__(
        self, model: TextModel, examples: Sequence[tuple[Sequence[int], Sequence[int]]], held_out: set[int]
    ) -> None:
        self.model = model.model
        self.examples = [example for number, example in enumerate(examples) if number not in held_out]
        self._held_out = [examples[number] for number in sorted(held_out)]

    def losses(self, examples: Sequence[tuple[Sequence[int], Sequence[int]]]) -> list[torch.Tensor]:
        """The loss of a step."""
        return [self._loss(examples)]

    def evaluate(self) -> tuple[float, dict[str, float]]:
        """The mean log-probability of a token of the references held out."""
        with torch.inference_mode():
            parts = [self._held_out[begin : begin + 64] for begin in range(0, len(self._held_out), 64)]
            losses = [float(self._loss(part)) * len(part) for part in parts]
        return -sum(losses) / len(self._held_out), {}

    def _loss(self, rows: Sequence[tuple[Sequence[int], Sequence[int]]]) -> torch.Tensor:
        longest = max(len(prompt) + len(reference) for prompt, reference in rows)
        ids = torch.full((len(rows), longest), 1)
        labels = torch.full_like(ids, IGNORED)
        for row, (prompt, reference) in enumerate(rows):
            end = len(prompt) + len(reference)
            ids[row, :end] = torch.tensor([*prompt, *reference])
            labels[row, len(prompt) : end] = torch.tensor(reference)
        mask = torch.tensor([[1] * (len(p) + len(r)) + [0] * (longest - len(p) - len(r)) for p, r in rows])
        hidden = self.model.model(input_ids=ids[:, :-1], attention_mask=mask[:, :-1]).last_hidden_state
        wanted = labels[:, 1:]
        logits = self.model.lm_head(hidden[wanted != IGNORED])
        return torch.nn.functional.cross_entropy(logits, wanted[wanted != IGNORED])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--contexts", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--vocabulary", type=int, default=4000)
    parser.add_argument("--learning-rate", type=float, default=2e-3)
    options = parser.parse_args(arguments)
    store = open_store(options.index)
    contexts = list(read_contexts(options.contexts, cited=True))
    papers = store.papers({paper_id for context in contexts for paper_id in context.cited_ids})
    pairs: list[tuple[Topic, Paper]] = [
        (topic, papers[paper_id])
        for topic in topics_of(contexts, store)
        for paper_id in topic.context.cited_ids
        if paper_id in papers and papers[paper_id].title
    ]
    texts = [f"{lead_of(topic)} {paper.title}, {surname(paper)}" for topic, paper in pairs]
    model = make_model(make_tokenizer(texts, options.vocabulary), options.width, options.layers)
    examples = [
        (prompt_of(model, topic, SETTINGS, LONGEST), reference_to(model, paper, SETTINGS)[:LONGEST])
        for topic, paper in pairs
    ]
    held_out = {number for number, (topic, _) in enumerate(pairs) if is_held_out(topic.context)}
    tokens = sum(len(prompt) + len(reference) for prompt, reference in examples)
    print(f"{len(examples):,} examples, {tokens:,} tokens, {len(held_out):,} held out; {size(model.model):,} weights")
    schedule = Schedule(options.learning_rate, epochs=options.epochs, evaluations=options.epochs)
    plan = {name: str(value) for name, value in vars(options).items()}
    learner = ReferenceLearner(model, examples, held_out)
    with training(DIRECTORY, options.out, plan, schedule, [], device="cpu", note=print) as own:
        record = own.fit(Learner(model.model, 32, learner.examples, learner.losses, learner.evaluate))
        write_model(DIRECTORY, options.out, ModelManifest(kind=DIRECTORY.kind), Provenance.of(contexts), model.save)
    print(f"{options.out}: log-probability of a token of the references held out {record.best:.3f}")


def is_held_out(context: Context) -> bool:
    name = context.citing_id or context.citing_key or context.context_id
    return hashlib.sha256(name.encode()).digest()[0] % HELD_OUT == 0


def size(model: Any) -> int:
    return sum(weights.numel() for weights in model.parameters())


if __name__ == "__main__":
    main()
