"""One example of every verb. They run in the tests, in this order, beside a small recording `walk.npy`."""

EXAMPLES = {
    "doctor": "svae doctor",
    "check": "svae check walk.npy --fps 30",
    "fit": "svae fit walk.npy --fps 30 --model hmm --states 4 --latent-dim 2 --target-duration 400ms --out runs/walk",
    "show": "svae show runs/walk",
    "watch": "svae watch runs/walk --once",
    "apply": "svae apply runs/walk walk.npy --out walk-states",
    "score": "svae score runs/walk walk.npy",
    "forecast": "svae forecast runs/walk walk.npy --start 2.5s --horizon 0.5s --samples 20 --out walk-forecast",
    "sample": "svae sample runs/walk --length 2s --samples 3 --out walk-samples.nc",
    "impute": "svae impute runs/walk walk.npy --out walk-filled",
    "export": "svae export runs/walk --to csv --out walk-tables",
    "baselines": "svae baselines runs/walk",
    "report": "svae report runs/walk",
    "movies": "svae movies runs/walk --length 2s",
    "view": "svae view runs/walk --no-browser",
    "compare": "svae compare runs/walk --by group",
    "rerun": "svae rerun runs/walk --out runs/walk-again",
    "sweep": "svae sweep walk.npy --fps 30 --model hmm --states 3,4 --target-duration 400ms --out runs/sweep",
    "demo": "svae demo pinwheel",
    "paper": "svae paper gradients",
}
