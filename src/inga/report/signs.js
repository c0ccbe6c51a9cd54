// ---- The signs of steps: how each is painted, what it is called, and with which others it is shown or hidden.

const SIGNS = {
  send: { label: "sent", paint: (c, x, y, k, s) => disc(c, x, y, 4.5 * s, k.ink) },
  request: { label: "call", paint: (c, x, y, k, s) => disc(c, x, y, 4.5 * s, k.ink) },
  response: { label: "answer", family: "objects", paint: (c, x, y, k, s) => disc(c, x, y, 3 * s, k.object) },
  event: { label: "event", paint: (c, x, y, k, s) => disc(c, x, y, 4 * s, k.accent) },
  deliver: { label: "delivered", paint: (c, x, y, k, s) => wedge(c, x, y, 5 * s, k.ink, -1) },
  take: { label: "taken", family: "levels", paint: (c, x, y, k, s) => ring(c, x, y + 8 * s, 2.6 * s, k.muted) },
  accept: { label: "accepted", family: "levels", paint: (c, x, y, k, s) => tick(c, x, y, 4 * s, k.muted) },
  confirm: { label: "confirmed", family: "levels", paint: (c, x, y, k, s) => diamond(c, x, y - 9 * s, 3 * s, k.muted, false) },
  acknowledge: { label: "acknowledged", family: "levels", paint: (c, x, y, k, s) => diamond(c, x, y - 9 * s, 3 * s, k.muted, true) },
  lost: { label: "lost", family: "repairs", paint: (c, x, y, k, s) => cross(c, x, y - 10 * s, 3.5 * s, k.fail) },
  gap: { label: "gap", family: "repairs", paint: (c, x, y, k, s) => square(c, x, y - 10 * s, 3 * s, k.early, false) },
  nack: { label: "asked again", family: "repairs", paint: (c, x, y, k, s) => square(c, x, y - 10 * s, 2 * s, k.early, true) },
  repair: { label: "repair", family: "repairs", paint: (c, x, y, k, s) => square(c, x, y - 10 * s, 3 * s, k.pass, true) },
  gave_up: { label: "given up", family: "repairs", paint: (c, x, y, k, s) => cross(c, x, y, 6 * s, k.fail) },
  crash: { label: "crash", family: "views", paint: (c, x, y, k) => cross(c, x, y, 6, k.fail) },
  suspect: { label: "suspected", family: "views", paint: (c, x, y, k) => ring(c, x, y, 5, k.early) },
  leave: { label: "left", family: "views", paint: (c, x, y, k) => tick(c, x, y, 9, k.muted) },
  view: { label: "view", family: "views", paint: (c, x, y, k) => tick(c, x, y, 9, k.accent) },
  abort: { label: "aborted", family: "objects", paint: (c, x, y, k) => cross(c, x, y, 4, k.fail) },
};

function disc(c, x, y, r, colour) { c.fillStyle = colour; c.beginPath(); c.arc(x, y, r, 0, 7); c.fill(); }
function ring(c, x, y, r, colour) { c.strokeStyle = colour; c.lineWidth = 1.4; c.beginPath(); c.arc(x, y, r, 0, 7); c.stroke(); }
function tick(c, x, y, r, colour) { c.strokeStyle = colour; c.lineWidth = 2; c.beginPath(); c.moveTo(x, y - r); c.lineTo(x, y + r); c.stroke(); }
function cross(c, x, y, r, colour) {
  c.strokeStyle = colour;
  c.lineWidth = 2.2;
  c.beginPath();
  c.moveTo(x - r, y - r); c.lineTo(x + r, y + r); c.moveTo(x + r, y - r); c.lineTo(x - r, y + r);
  c.stroke();
}
function wedge(c, x, y, r, colour, up) {
  c.fillStyle = colour;
  c.beginPath();
  c.moveTo(x - r * 0.8, y + up * r * 1.3); c.lineTo(x + r * 0.8, y + up * r * 1.3); c.lineTo(x, y);
  c.fill();
}
function diamond(c, x, y, r, colour, full) {
  c.fillStyle = c.strokeStyle = colour;
  c.lineWidth = 1.2;
  c.beginPath();
  c.moveTo(x - r, y); c.lineTo(x, y - r); c.lineTo(x + r, y); c.lineTo(x, y + r); c.closePath();
  if (full) c.fill(); else c.stroke();
}
function square(c, x, y, r, colour, full) {
  c.fillStyle = c.strokeStyle = colour;
  c.lineWidth = 1.4;
  if (full) c.fillRect(x - r, y - r, 2 * r, 2 * r); else c.strokeRect(x - r, y - r, 2 * r, 2 * r);
}
