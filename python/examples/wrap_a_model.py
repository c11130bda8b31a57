"""A model of torchvision's, or any other, adapts while it answers."""

import pathlib
import sys

import gala_tta as gala
import torch


def make_model() -> torch.nn.Module:
    """Return torchvision's ResNet-18; where torchvision does not load, the same network of ours."""
    try:
        # Each torchvision fits one build of torch: beside another it ends in a RuntimeError.
        from torchvision.models import resnet18  # weights="DEFAULT" for trained ones
    except (ImportError, RuntimeError) as problem:
        print(f"a ResNet-18 of our own, without torchvision ({problem})")
        sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "bench" / "peers"))
        import networks

        return networks.make("resnet18")
    print("torchvision's ResNet-18")
    return resnet18()


def main() -> None:
    torch.manual_seed(0)
    model = make_model().eval()
    stream = [torch.rand(8, 3, 64, 64) for _ in range(4)]  # your images, preprocessed

    adapter = gala.Adapter(model, method="roid", select="gala:window=20", norm="batch")
    for images in stream:
        logits = adapter(images)  # answers, and adapts
        last = adapter.last
        print(f"class {int(logits[0].argmax())}, moved {len(last.selected)}: {last.selected[0]}")
    adapter.close()  # the model is the source model again


if __name__ == "__main__":
    main()
