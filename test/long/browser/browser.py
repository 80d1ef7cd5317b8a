# browser.py URL STEP...: opens a page in a headless Chromium, and does these steps with it:
#
#   see=EXPRESSION   waits until an expression of JavaScript is true
#   click=EXPRESSION clicks into the middle of the element
#   press=KEYS       presses a key, as Control+f, or types text
#   answer=TEXT      what the next question (prompt) is answered with
#   shot=FILE        writes a PNG
#
# Fails, with the reason, if a step can't be done, or if the page has thrown an error or logged one.  The browser is
# driven by Chrome's DevTools protocol, by a pipe: https://chromedevtools.github.io/devtools-protocol.
#
# SPDX-License-Identifier: MIT
import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time

LIMIT = 30 * int(os.environ.get("SLOW") or 1)


class Browser:
    def __init__(self, folder):
        # Chromium reads commands from the descriptor 3, and writes answers to 4.
        command, self.to = os.pipe()
        self.answers, answer = os.pipe()
        shell = 'exec 3<&%d 4>&%d; exec "$@"' % (command, answer)
        options = ["--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-dev-shm-usage", "--no-first-run"]
        options += ["--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--allow-file-access-from-files"]
        options += ["--user-data-dir=" + folder, "--window-size=1300,900", "about:blank"]
        program = shutil.which("chromium") or "chromium-browser"
        with open(os.path.join(folder, "log"), "w") as log:
            self.process = subprocess.Popen(
                ["sh", "-c", shell, "sh", program] + options, pass_fds=(command, answer), stdout=log, stderr=log
            )
        os.close(command)
        os.close(answer)
        self.number, self.session, self.rest = 0, None, b""
        self.errors, self.reply = [], ""

    def read(self, end):
        while b"\0" not in self.rest:
            left = end - time.monotonic()
            data = os.read(self.answers, 1 << 20) if left > 0 and select.select([self.answers], [], [], left)[0] else b""
            if not data:
                sys.exit("the browser has ended, or does not answer")
            self.rest += data
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def event(self, name, values):
        if name == "Page.javascriptDialogOpening":
            self.send("Page.handleJavaScriptDialog", accept=True, promptText=self.reply)
        elif name == "Runtime.exceptionThrown":
            self.errors.append(json.dumps(values["exceptionDetails"]))
        elif name == "Log.entryAdded" and values["entry"]["level"] == "error":
            self.errors.append(values["entry"]["text"])

    def send(self, method, **values):
        self.number += 1
        message = {"id": self.number, "method": method, "params": values}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to, json.dumps(message).encode() + b"\0")
        return self.number

    def ask(self, method, **values):
        number, end = self.send(method, **values), time.monotonic() + LIMIT
        while True:
            message = self.read(end)
            if message.get("id") == number:
                if "error" in message:
                    sys.exit("%s: %s" % (method, message["error"]))
                return message["result"]
            if "method" in message:
                self.event(message["method"], message["params"])

    def value(self, expression):
        result = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return None if "exceptionDetails" in result else result["result"].get("value")

    def open(self, url):
        page = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.ask("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in "Page", "Runtime", "Log":
            self.ask(domain + ".enable")
        self.ask("Page.navigate", url=url)
        self.see("document.readyState === 'complete'")

    def see(self, expression):
        end = time.monotonic() + LIMIT
        while self.value(expression) is not True:
            if time.monotonic() > end:
                sys.exit("waited in vain for %s: %s %s" % (expression, self.value(expression), self.errors))
            time.sleep(0.05)

    def click(self, element):
        self.value("(%s).scrollIntoView({block: 'center'})" % element)
        place = self.value("(() => { const b = (%s).getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()" % element)
        if not place:
            sys.exit("there is no " + element)
        for kind in "mouseMoved", "mousePressed", "mouseReleased":
            # a question that this asks holds up the answer
            self.send("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)
        self.value("0")

    def press(self, keys):
        if not keys.startswith("Control+"):
            self.ask("Input.insertText", text=keys)
            return
        key = keys[-1]
        for kind in "rawKeyDown", "keyUp":
            self.send("Input.dispatchKeyEvent", type=kind, key=key, code="Key" + key.upper(), modifiers=2)
        self.value("0")

    def shot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.ask("Page.captureScreenshot", format="png")["data"]))

    def end(self):
        self.process.kill()
        self.process.wait()


with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
    browser = Browser(folder)
    try:
        browser.open(sys.argv[1])
        for step in sys.argv[2:]:
            name, _, value = step.partition("=")
            if name == "answer":
                browser.reply = value
            elif name in ("see", "click", "press", "shot"):
                getattr(browser, name)(value)
            else:
                sys.exit("what is " + step)
        browser.value("0")
        if browser.errors:
            sys.exit("\n".join(browser.errors))
    finally:
        browser.end()
