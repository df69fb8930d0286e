// The points of the charts: rows of time in ms, stock, attempts a second and latency, as the
// edge sends them.
const finest = 1000

export class Points {
  rows = []

  // take takes the history of an edge. What it does not go back to stays: after a restart the
  // edge has forgotten it.
  take(history) {
    const first = history[0]?.[0] ?? Infinity
    this.rows = [...this.rows.filter((row) => row[0] < first), ...history]
  }

  // add adds a point; false: it was there.
  add(row) {
    const last = this.rows.at(-1)
    if (last && row[0] <= last[0]) return false
    this.rows.push(row)
    if (this.rows.length > 4000) this.thin()
    return true
  }

  // thin drops nine of ten points that are older than ten minutes.
  thin() {
    const old = this.rows.at(-1)[0] - 600_000
    let kept = -Infinity
    this.rows = this.rows.filter((row) => {
      if (row[0] >= old) return true
      if (row[0] - kept < 10 * finest) return false
      kept = row[0]
      return true
    })
  }

  // within returns the columns of the last seconds, with a gap wherever points are missing.
  within(seconds) {
    const last = this.rows.at(-1)?.[0] ?? 0
    const from = last - seconds * 1000
    const width = this.rows.at(-1)?.length ?? 0
    const columns = Array.from({ length: width }, () => [])
    let before = null
    for (const row of this.rows) {
      if (row[0] < from) continue
      const age = last - row[0]
      const step = age < 600_000 ? finest : age < 7_200_000 ? 10 * finest : 60 * finest
      if (before !== null && row[0] - before > 3.5 * step) columns.forEach((column, i) => column.push(i === 0 ? (before + step) / 1000 : null))
      columns.forEach((column, i) => column.push(i === 0 ? row[0] / 1000 : row[i]))
      before = row[0]
    }
    return columns
  }
}
