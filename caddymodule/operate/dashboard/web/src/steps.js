// Steps run in animation frames, for a part of each: so a long update costs no frame. Steps that
// are left when others come run at once, and so do all while the page is hidden.
const share = 5 // ms of a frame

export class Steps {
  left = []

  run(steps) {
    const waiting = this.left.length > 0
    this.finish()
    this.left = steps
    if (document.hidden) this.finish()
    else if (!waiting) requestAnimationFrame(() => this.go())
  }

  go() {
    const until = performance.now() + share
    do this.left.shift()?.()
    while (this.left.length && performance.now() < until)
    if (this.left.length) requestAnimationFrame(() => this.go())
  }

  finish() { for (const step of this.left.splice(0)) step() }
}
