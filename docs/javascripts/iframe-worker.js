// The search of the site runs in a worker, which browsers refuse to pages that are opened as files.
// There a hidden frame takes the worker's place: its script runs in the frame, and messages pass as events.

if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(address) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      this.inside = new Promise((ready) => {
        frame.onload = () => {
          const { contentWindow: inner, contentDocument: page } = frame;
          inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
          const script = page.createElement("script");
          script.src = address;
          script.onload = () => ready(inner);
          page.body.append(script);
        };
      });
      document.documentElement.append(frame);
    }

    postMessage(data) {
      this.inside.then((inner) => inner.dispatchEvent(new MessageEvent("message", { data })));
    }
  };
}
