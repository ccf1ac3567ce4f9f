# Measures the farm of the skills that start from results: six nights of one small model on this machine.
# A commit before the fifth night adds a layer. All files are in voice/, which is a git repository.
mkdir voice
git init -q voice
cat > voice/model.py <<'END'
import torch


class Voice(torch.nn.Module):
    def __init__(self):
        super().__init__()
        layers = [torch.nn.Conv2d(3, 32, 3), torch.nn.ReLU(), torch.nn.Conv2d(32, 8, 3)]
        self.encoder = torch.nn.Sequential(*layers)

    def forward(self, x):
        return torch.cumsum(self.encoder(x), dim=1)


def voice():
    return Voice().eval(), (torch.randn(1, 3, 96, 96),)
END
cat > voice/nightly.yaml <<'END'
name: nightly
models: [./model.py:voice]
variants: [sme2_on, sme2_off]
modes: [timing, profile]
executions: 12
warmup_executions: 2
sessions: 8
END
git -C voice add .
git -C voice -c user.name=Ada -c user.email=ada@example.org commit -qm "Voice"
for day in 01 02 03 04; do etfarm sweep voice/nightly.yaml --night 2026-11-$day; done
sed -i 's/(32, 8, 3)\]/(32, 32, 3), torch.nn.Conv2d(32, 8, 3)]/' voice/model.py
git -C voice -c user.name=Ben -c user.email=ben@example.org commit -qam "A third layer"
for day in 05 06; do etfarm sweep voice/nightly.yaml --night 2026-11-$day --fail-on never; done
