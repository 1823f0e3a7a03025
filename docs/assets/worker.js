// A page that is opened from the disk may not start a worker. The search is one: its script runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.waiting = [];
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      this.frame.addEventListener("load", () => this.start(new URL(url, location.href)), { once: true });
      document.body.append(this.frame);
    }

    start(url) {
      const inside = this.frame.contentWindow;
      const script = inside.document.createElement("script");
      inside.postMessage = (data) => setTimeout(() => this.onmessage?.(new MessageEvent("message", { data })));
      script.onload = () => {
        this.ready = true;
        this.waiting.forEach((data) => this.postMessage(data));
      };
      script.onerror = () => this.onerror?.(new Event("error", { cancelable: true }));
      script.src = url;
      inside.document.body.append(script);
    }

    postMessage(data) {
      if (!this.ready) this.waiting.push(data);
      else this.frame.contentWindow.onmessage({ data });
    }

    terminate() {
      this.frame.remove();
    }
  };
}
