#!/usr/bin/env python3
"""`python -m gala_tta export` from a plain checkout: a network of PyTorch becomes a file for gala.

  python tools/export_model.py torchvision:resnet50 net.pt2 --weights pretrained
  python tools/export_model.py --help

The code is the package's, python/gala_tta/export.py, which needs nothing of the package: it is run
here as a file, so that nothing has to be built or installed.
"""

import importlib.util
from pathlib import Path

_code = Path(__file__).resolve().parents[1] / "python" / "gala_tta" / "export.py"
_spec = importlib.util.spec_from_file_location("gala_tta_export", _code)
_module = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_module)

export, load_network = _module.export, _module.load_network
main, write = _module.main, _module.write

if __name__ == "__main__":
    main()
