"""Models learn by transformers' Trainer: our schedule, dev values, progress and checkpoints in its terms."""

import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import accelerate  # noqa: F401  where it is missing, transformers does not say so in one line
import torch
from safetensors.torch import load_model, save_model
from transformers import PrinterCallback, Trainer, TrainingArguments

from citerec.errors import BuildError
from citerec.files.writing import writing_file
from citerec.models.find import quiet_libraries
from citerec.train.groups import Learner, Training, TrainingRecord

BETAS = (0.9, 0.99)
"""Lion's shares of the momentum in a step, and in the next momentum: the paper's defaults."""

_PLAIN: Any = {"logging_strategy": "no", "remove_unused_columns": False, "disable_tqdm": True, "report_to": "none"}
_WEIGHTS = "model.safetensors"
_BEST = "best.safetensors"
_LAST_WRITTEN = "trainer_state.json"  # the last file of a checkpoint: one without it was not written whole


class LossTrainer(Trainer):
    """A trainer that measures a learner on dev, says so, keeps the best weights and continues what was stopped.

    Args:
        learner: The model and what it learns from.
        training: The training under way.
    """

    def __init__(self, learner: Learner, training: Training) -> None:
        self._learner, self._training = learner, training
        schedule, folder = training.schedule, training.folder
        device = next(learner.model.parameters()).device
        self._checkpoints = sorted(folder.glob(f"checkpoint-*/{_LAST_WRITTEN}"), key=lambda one: one.stat().st_mtime_ns)
        arguments = TrainingArguments(
            output_dir=str(folder),
            per_device_train_batch_size=learner.batch,
            learning_rate=schedule.learning_rate,
            num_train_epochs=schedule.epochs,
            warmup_steps=0.1 if schedule.warm_up is None else schedule.warm_up,
            weight_decay=schedule.decay,
            seed=schedule.seed,
            eval_on_start=schedule.first and not self._checkpoints,
            save_steps=schedule.checkpoint_every,
            save_total_limit=2,  # the last one may not be complete
            **_PLAIN,
            use_cache=bool(getattr(getattr(learner.model, "config", None), "use_cache", False)),  # as it is
            use_cpu=device.type == "cpu",
        )
        # The device of the model, and no GPU beside it.
        arguments.distributed_state.device = vars(arguments)["_setup_devices"] = device
        arguments._n_gpu = min(1, arguments.n_gpu)
        optimizer = Lion if schedule.optimizer == "lion" else torch.optim.AdamW
        super().__init__(
            model=learner.model,
            args=arguments,
            train_dataset=learner.examples,
            data_collator=lambda examples: {"examples": examples},
            optimizer_cls_and_kwargs=(optimizer, {"lr": schedule.learning_rate}),
        )
        self.remove_callback(PrinterCallback)

    def fit(self) -> TrainingRecord:
        """Trains a model, or continues its training; `Training.fit`."""
        with quiet_libraries():
            self.train(resume_from_checkpoint=str(self._checkpoints[-1].parent) if self._checkpoints else None)
        self._training.on_progress("training", self.state.max_steps, self.state.max_steps)
        load_model(self._learner.model, self._training.folder / _BEST)
        self._learner.model.eval()
        values = self._history("eval_value")
        best_step = max(values, key=lambda step: values[step])
        results = self._history("eval_results")[best_step]
        return TrainingRecord(self.state.global_step, values, best_step, results)

    def _history(self, name: str) -> dict[int, Any]:
        """What was logged under a name, by step."""
        history: list[dict[str, Any]] = self.state.log_history
        return {entry["step"]: entry[name] for entry in history if name in entry}

    def training_step(self, model: Any, inputs: Any, num_items_in_batch: Any = None) -> torch.Tensor:  # noqa: ARG002
        """Adds the gradients of a step, part by part; returns its loss. Says when the trainer measures and saves."""
        done, steps = self.state.global_step, self.state.max_steps
        self._training.on_progress("training", done, steps)
        model.train()
        total = torch.zeros((), device=self.args.device)
        for loss in self._learner.losses(inputs["examples"]):
            self.accelerator.backward(loss)
            total += loss.detach()
        if not total.isfinite():
            fault = f"the loss of step {done + 1} is {total.item()}"
            raise BuildError(fault, "Give a lower learning rate: -c learning_rate=NUMBER")
        # So many times in all, and after the last step; each dev value makes a checkpoint.
        if done + 1 == steps or (done + 1) % math.ceil(steps / self._training.schedule.evaluations) == 0:
            self.control.should_log = self.control.should_evaluate = self.control.should_save = True
        return total

    def evaluate(self, *_arguments: Any, **_options: Any) -> dict[str, float]:
        """Measures the learner on dev; keeps its weights if they are the best, and stops training without gain."""
        self._learner.model.eval()
        value, results = self._learner.evaluate()
        earlier = list(self._history("eval_value").values())
        is_best = not earlier or value > max(earlier)
        if is_best:
            with writing_file(self._training.folder / _BEST) as partial:
                save_model(self._learner.model, str(partial))
        elif len(earlier) - earlier.index(max(earlier)) >= self._training.schedule.patience:
            self.control.should_training_stop = True
        self._training.note(f"step {self.state.global_step:,}: dev {value:.4f}{', the best so far' if is_best else ''}")
        self.log({"eval_value": value, "eval_results": results})  # type: ignore[dict-item]
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, {"eval_value": value})
        return {"eval_value": value}

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:  # noqa: ARG002
        """Writes the weights alone into a checkpoint: no pickle of the arguments."""
        assert output_dir
        Path(output_dir).mkdir(exist_ok=True)
        save_model(self._learner.model, str(Path(output_dir) / _WEIGHTS))

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:  # noqa: ARG002
        load_model(self._learner.model, Path(resume_from_checkpoint) / _WEIGHTS)


class Lion(torch.optim.Optimizer):
    """Lion, the optimiser of Chen et al. 2023 ("Symbolic Discovery of Optimization Algorithms", algorithm 2).

    Each weight moves by the learning rate: only the sign of momentum and gradient counts. The paper advises a learning
    rate 3 to 10 times smaller than AdamW's, and a weight decay as much larger.
    """

    def __init__(self, params: Iterable[Any], lr: float, weight_decay: float = 0.0) -> None:
        super().__init__(params, {"lr": lr, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]  # noqa: ARG002
        """One step: θ ← θ - η (sign(β₁ m + (1 - β₁) g) + λ θ), then m ← β₂ m + (1 - β₂) g."""
        for group in self.param_groups:
            for weights in group["params"]:
                if weights.grad is None:
                    continue
                momentum = self.state[weights].setdefault("momentum", torch.zeros_like(weights))
                weights.mul_(1 - group["lr"] * group["weight_decay"])
                weights.add_(torch.lerp(weights.grad, momentum, BETAS[0]).sign_(), alpha=-group["lr"])
                momentum.lerp_(weights.grad, 1 - BETAS[1])
