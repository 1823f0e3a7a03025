"""A headless Chromium over the DevTools protocol on a pair of pipes: what a person does, and what they see.

Protocol: https://chromedevtools.github.io/devtools-protocol/ ; messages are JSON with a zero byte behind each.
"""

import base64
import json
import os
import select
import shutil
import subprocess
import time

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
WHY_NOT = None if CHROMIUM and shutil.which("bash") else "no Chromium here; on Debian  apt-get install chromium"
FLAGS = "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --remote-debugging-pipe --no-first-run "
FLAGS += "--disable-extensions --disable-background-networking --disable-component-update --mute-audio"
KEYS = {" ": ("Space", 32), "ArrowLeft": ("ArrowLeft", 37), "ArrowRight": ("ArrowRight", 39), "Enter": ("Enter", 13)}
SHIFT = 8
PATIENCE = 120.0  # seconds that a condition may take


class Browser:
    """One tab; `with Browser(folder, width, height) as tab: tab.open(url)`."""

    def __init__(self, folder, width=1280, height=800):
        to_child, self._write = os.pipe()
        self._read, from_child = os.pipe()
        flags = [*FLAGS.split(), f"--window-size={width},{height}", f"--user-data-dir={folder}"]
        line = ["bash", "-c", f'exec "$@" 3<&{to_child} 4>&{from_child}', "bash", CHROMIUM, *flags]
        quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(line, pass_fds=(to_child, from_child), **quiet)
        os.close(to_child)
        os.close(from_child)
        self._left, self._number, self._session, self.console = b"", 0, None, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._read)
        os.close(self._write)

    # --- protocol -------------------------------------------------------------------------------------------------

    def call(self, method, **words):
        """One command and its result; events that come meanwhile are kept in `console` where they are errors."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": words}
        message |= {"sessionId": self._session} if self._session else {}
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer)
                return answer["result"]
            self._noted(answer)

    def _next(self):
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._read], [], [], PATIENCE)
            data = os.read(self._read, 2**20) if ready else b""
            assert data, "Chromium said nothing more"
            self._left += data
        found, _, self._left = self._left.partition(b"\0")
        return json.loads(found)

    def _noted(self, event):
        if event.get("method") == "Runtime.exceptionThrown":
            self.console.append(event["params"]["exceptionDetails"])
        if event.get("method") == "Log.entryAdded" and event["params"]["entry"]["level"] == "error":
            self.console.append(event["params"]["entry"])

    # --- what people do and see -----------------------------------------------------------------------------------

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && document.body?.dataset.source !== undefined")

    def value(self, expression):
        """What a JavaScript expression is."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression):
        """Wait until it holds."""
        end = time.monotonic() + PATIENCE
        while not self.value(expression):
            assert time.monotonic() < end, f"never: {expression}; {self.console}"
            time.sleep(0.03)

    def place(self, selector):
        """The middle of an element."""
        box = f"document.querySelector({selector!r}).getBoundingClientRect()"
        return self.value(f"(b => [b.x + b.width / 2, b.y + b.height / 2])({box})")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click_at(self, x, y, count=1):
        for number in range(1, count + 1):
            for kind in ("mousePressed", "mouseReleased"):
                self.mouse(kind, x, y, button="left", clickCount=number)

    def click(self, selector, count=1):
        self.click_at(*self.place(selector), count)

    def drag(self, start, end, steps=6):
        self.mouse("mousePressed", *start, button="left", clickCount=1)
        for i in range(1, steps + 1):
            x, y = (a + (b - a) * i / steps for a, b in zip(start, end, strict=True))
            self.mouse("mouseMoved", x, y, button="left")
        self.mouse("mouseReleased", *end, button="left", clickCount=1)

    def press(self, key, shift=False):
        code, number = KEYS.get(key, (f"Key{key.upper()}", ord(key.upper()[0])))
        known = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": SHIFT if shift else 0}
        text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **known, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **known)

    def write(self, text):
        self.call("Input.insertText", text=text)

    def pixels(self, selector):
        """The picture of a canvas, as text that differs where the picture does."""
        return self.value(f"document.querySelector({selector!r}).toDataURL()")

    def screenshot(self, path):
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
