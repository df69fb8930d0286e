import { language, texts } from './texts.js'

const whole = new Intl.NumberFormat(language, { maximumFractionDigits: 0 })
const fine = new Intl.NumberFormat(language, { maximumSignificantDigits: 3 })

// Times are told in the time zone of the sale, wherever the browser is, and say which one it is.
const formatsOf = (timeZone) => {
  const clock = { timeZone, hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }
  const day = { timeZone, month: 'short', day: 'numeric', hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }
  const make = (options) => new Intl.DateTimeFormat(language, options)
  return {
    timeZone, tick: make(clock), clock: make({ ...clock, timeZoneName: 'short' }),
    day: make({ ...day, timeZoneName: 'short' }), date: make({ timeZone, dateStyle: 'short' }),
  }
}
let formats = formatsOf('UTC')

// tellIn sets the time zone; UTC where the browser does not know it.
export const tellIn = (zone) => {
  if (zone === formats.timeZone) return
  try { formats = formatsOf(zone) } catch { formats = formatsOf('UTC') }
}
export const zone = () => formats.timeZone

export const count = (n) => n === null || n === undefined ? '–' : whole.format(n)
export const measure = (n) => n === null || n === undefined ? '–' : n >= 100 ? whole.format(n) : fine.format(n)

// pace is a number of units a second, or a minute where they are few.
export const pace = (n) => n >= 1 ? texts.aSecond(measure(n)) : texts.aMinute(measure(n * 60))
export const clock = (ms) => formats.clock.format(ms)

// tick is a time of day where the zone is written beside it.
export const tick = (ms) => formats.tick.format(ms)

// moment is a time of day, with the day where it is another one.
export const moment = (ms, now = Date.now()) => formats.date.format(ms) === formats.date.format(now) ? clock(ms) : formats.day.format(ms)

// share is a part of a whole in percent: never 100 % while something is missing.
export const share = (part) => {
  const percent = part * 100
  const digits = percent > 99 && percent < 100 ? 2 : percent < 10 ? 1 : 0
  return `${Math.min(percent === 100 ? 100 : 99.99, Number(percent.toFixed(digits)))} %`
}

// bytes is a size in the largest unit of which there is one.
export const bytes = (n) => {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  const i = n < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(n) / 10))
  return `${measure(n / 1024 ** i)} ${units[i]}`
}

// span is a length of time, in two units at most.
export const span = (ms) => {
  // rounded before it is split: the smaller unit never reaches a whole larger one
  const rounded = (unit) => Math.round(Math.max(0, ms) / unit)
  const [tenths, s, min] = [rounded(100), rounded(1000), rounded(60000)]
  if (tenths < 100) return `${(tenths / 10).toFixed(1)} s`
  if (s < 120) return `${s} s`
  if (s < 7200) return `${Math.floor(s / 60)} min ${s % 60} s`
  if (min < 2880) return `${Math.floor(min / 60)} h ${min % 60} min`
  return `${rounded(86400000)} days`
}
