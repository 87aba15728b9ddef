"""The article's loop and plain products in this machine's own PyTorch, for tools/device-check.

usage: device_torch.py OUT
"""
import json
import sys
import time

import torch


def seconds_of(fn):
    for _ in range(20):
        fn()
    torch.cuda.synchronize()
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(50):
            fn()
        torch.cuda.synchronize()
        best = min(best, (time.perf_counter() - start) / 50)
    return best


device = torch.device("cuda")
inputs = torch.randn(16, 64, 1000, device=device)
labels = torch.randint(0, 10, (16, 64), device=device)
model = torch.nn.Sequential(torch.nn.Linear(1000, 512), torch.nn.ReLU(), torch.nn.Linear(512, 10)).to(device)
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
count = 0


def step():
    global count
    optimizer.zero_grad()
    loss = criterion(model(inputs[count % 16]), labels[count % 16])
    loss.backward()
    optimizer.step()
    count += 1


result = {"torch": torch.__version__, "device": torch.cuda.get_device_name(), "gemm": []}
result["seed_us"] = seconds_of(step) * 1e6
print(f"- PyTorch {result['torch']}: the article's step {result['seed_us']:.1f} us")
torch.backends.cuda.matmul.allow_tf32 = False
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    for n in (512, 2048, 8192):
        a, b = (torch.randn(n, n, device=device).to(dtype) for _ in range(2))
        tflops = 2 * n**3 / seconds_of(lambda: a @ b) * 1e-12
        result["gemm"].append({"dtype": str(dtype), "n": n, "tflops": tflops})
        print(f"- cuBLAS by PyTorch, {dtype} {n}: {tflops:.3f} TFLOP/s")
with open(sys.argv[1], "w") as file:
    json.dump(result, file)
