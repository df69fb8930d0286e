// What users may do. Each act says what will change, asks once more, and shows the answer of
// the API as it came.
import { by, make, say } from './dom.js'
import { texts } from './texts.js'

const dialog = by('dialog')

// post sends a request of the admin API. The edge refuses it unless it comes from this page.
export const post = async (path, body = {}) => {
  const answer = await fetch(`acts/${path}`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })
  const text = await answer.text()
  let value = {}
  try { value = JSON.parse(text) } catch { /* what came is shown as it is */ }
  return { ok: answer.ok, status: answer.status, text, value }
}

// part is a name as one segment of a path, dots too.
export const part = (name) => /^\.+$/.test(name) ? name.replaceAll('.', '%2E') : encodeURIComponent(name)

// ask shows what will be done. run does it, and returns the answers.
const ask = ([title, effect], button, run, input = null) => {
  const told = make('div', { class: 'effect' }, effect)
  const answer = make('div', { 'aria-live': 'polite' })
  const go = make('button', { type: 'submit', class: 'primary' }, button)
  const back = make('button', { type: 'button', onclick: () => dialog.close() }, texts.cancel)
  const submit = async (event) => {
    event.preventDefault()
    go.disabled = true
    if (input) input.field.disabled = true
    say(answer, texts.working)
    try {
      const got = await run(input?.field.valueAsNumber)
      const bad = got.find((one) => !one.ok)
      answer.replaceChildren(make('p', { class: bad ? 'bad' : 'good' }, bad ? `${texts.failed} ${bad.status}` : texts.done),
        make('pre', { tabindex: '0' }, got.map((one) => pretty(one)).join('\n')))
    } catch {
      answer.replaceChildren(make('p', { class: 'bad' }, texts.noAnswer))
    }
    go.remove()
    say(back, texts.closeDialog)
    back.focus()
  }
  dialog.replaceChildren(make('form', { onsubmit: submit }, make('h2', { id: 'dialogTitle' }, title), told, input?.label, answer, make('div', { class: 'buttons' }, go, back)))
  if (input) {
    const tell = () => {
      const n = input.field.valueAsNumber
      say(told, `${texts.ask.stockEffect(input.item, n)} ${effect}`)
      go.disabled = !Number.isInteger(n) || n === 0
    }
    input.field.addEventListener('input', tell)
    tell()
  }
  if (!dialog.open) dialog.showModal()
  ;(input?.field ?? back).focus()
}

const pretty = (answer) => {
  const { text, value } = answer
  return Object.keys(value).length ? JSON.stringify(value, null, 2) : text
}

// askStatus opens, pauses or closes a sale.
export const askStatus = (act, sale) => ask(texts.ask[act](sale), texts.act[act], async () => [await post(`sales/${part(sale.id)}/${act}`)])

// askOffers lets no more offers be made to people who wait, or lets them go on.
export const askOffers = (act, sale) => ask(texts.ask.offers[act](sale), texts.offers[act], async () => [await post(`sales/${part(sale.id)}/waitlist/${act}`)])

// askStock adds stock to an item. The same change is sent once, however often it is asked for.
export const askStock = (sale, item) => {
  const id = `page-${crypto.getRandomValues(new Uint32Array(2)).join('-')}`
  const field = make('input', { type: 'number', step: '1', required: true, id: 'delta' })
  const label = make('label', { for: 'delta' }, `${texts.units} `, field)
  ask(texts.ask.stock(item), texts.addStock, async (delta) => [await post(`sales/${part(sale.id)}/items/${part(item.sku)}/stock`, { id, delta, region: item.region || undefined })], { field, label, item })
}

// askOne settles one hold.
export const askOne = (to, hold) => ask(texts.ask[to](1, hold.units), texts[to], async () => [await post(`reservations/${part(hold.id)}/${to}`)])

// bulk sends a request part by part, as the command does: by names in parts, or from where the answer before ended.
const bulkSize = 500

// confirmNames confirms the reservations and refs that a file names.
const confirmNames = async (path, names, more) => {
  const answers = []
  for (let from = 0; from < names.length; from += bulkSize) {
    const answer = await post(path, { names: names.slice(from, from + bulkSize), ...more })
    answers.push(answer)
    if (!answer.ok) break
  }
  return answers
}

// askFile asks for a file of the shop's orders, says what confirming them would change, and asks once more.
export const askFile = (sale) => {
  const file = make('input', { type: 'file', id: 'file', accept: '.csv,.tsv,.txt,.json,.jsonl,text/csv,text/plain,application/json', required: true })
  const column = make('input', { type: 'text', id: 'column', autocomplete: 'off', spellcheck: 'false', maxlength: '128' })
  const said = make('p', { class: 'bad', 'aria-live': 'polite' })
  const go = make('button', { type: 'submit', class: 'primary' }, texts.file.read)
  const submit = async (event) => {
    event.preventDefault()
    const chosen = file.files[0]
    if (!chosen) return
    if (chosen.size > texts.file.most) { say(said, texts.file.tooLarge(chosen.size)); return }
    go.disabled = true
    say(said, texts.working)
    try {
      const read = await post(`sales/${part(sale.id)}/holds/names`, { name: chosen.name, text: await chosen.text(), column: column.value.trim() })
      if (!read.ok) { say(said, read.value.error ?? read.text); go.disabled = false; return }
      const path = `sales/${part(sale.id)}/holds/confirm`
      const dry = await confirmNames(path, read.value.names, { dry_run: true })
      const bad = dry.find((one) => !one.ok)
      if (bad) { say(said, bad.value.error ?? bad.text); go.disabled = false; return }
      ask([texts.ask.confirm(totals(dry).changed, null)[0], foreseen(read.value.names.length, totals(dry))], texts.confirm, () => confirmNames(path, read.value.names, {}))
    } catch {
      say(said, texts.file.noAnswer)
      go.disabled = false
    }
  }
  dialog.replaceChildren(make('form', { onsubmit: submit }, make('h2', { id: 'dialogTitle' }, texts.file.title), make('p', { class: 'effect' }, texts.file.lead),
    make('p', {}, make('label', { for: 'file' }, texts.file.label), ' ', file), make('p', {}, make('label', { for: 'column' }, `${texts.file.column} `), column), said,
    make('div', { class: 'buttons' }, go, make('button', { type: 'button', onclick: () => dialog.close() }, texts.cancel))))
  if (!dialog.open) dialog.showModal()
  file.focus()
}

// totals sums up the answers to the parts of a request.
const totals = (answers) => {
  const sum = { changed: 0, already: 0, from_in_doubt: 0, not_found: [], ambiguous: [], late: [], in_doubt: 0 }
  for (const { value } of answers) {
    for (const name of ['changed', 'already', 'from_in_doubt']) sum[name] += value[name] ?? 0
    for (const name of ['not_found', 'ambiguous', 'late']) sum[name].push(...(value[name] ?? []))
    sum.in_doubt = value.in_doubt ?? 0
  }
  return sum
}

// foreseen lists what would change, and what would not.
const foreseen = (named, sum) => {
  const some = (names) => names.length ? make('pre', { tabindex: '0', 'aria-label': texts.file.names }, names.slice(0, 20).join('\n'), names.length > 20 ? `\n${texts.file.more(names.length - 20)}` : '') : null
  const line = (text, names = []) => make('li', {}, text, some(names))
  return make('ul', { class: 'foreseen' }, line(texts.file.changed(sum.changed, named)), sum.already ? line(texts.file.already(sum.already)) : null,
    sum.not_found.length ? line(texts.file.notFound(sum.not_found.length), sum.not_found) : null,
    sum.ambiguous.length ? line(texts.file.ambiguous(sum.ambiguous.length), sum.ambiguous.map((a) => a.ref)) : null,
    sum.late.length ? line(texts.file.late(sum.late.length), sum.late) : null, line(texts.file.left(Math.max(0, sum.in_doubt - sum.from_in_doubt))))
}

// askMany settles all holds of a cause. A dry run says first what would change.
export const askMany = async (to, sale, cause) => {
  const path = `sales/${part(sale.id)}/holds/${to}`
  const filter = cause.cause ? { state: 'in_doubt', cause: cause.cause } : { state: 'in_doubt', all: true }
  const each = async (body) => {
    const answers = []
    let after = ''
    do {
      const answer = await post(path, { ...filter, ...body, after: after || undefined })
      answers.push(answer)
      after = answer.ok ? answer.value.next : ''
    } while (after)
    return answers
  }
  try {
    const dry = await each({ dry_run: true })
    const sum = (name) => dry.reduce((n, one) => n + (one.value[name] ?? 0), 0)
    const list = (name) => { const all = dry.flatMap((one) => one.value[name] ?? []); return all.length ? all : undefined }
    const bad = dry.find((one) => !one.ok)
    if (bad) { ask([texts.failed, bad.value.error ?? bad.text], texts[to], async () => dry); return }
    const changed = sum('changed')
    const [title, effect] = texts.ask[to](changed, changed === cause.holds ? cause.units : null)
    const rest = texts.ask.dryRun({ already: sum('already'), too_soon: list('too_soon'), late: list('late') })
    ask([title, `${effect} ${rest}`], texts[to], () => each({}))
  } catch {
    ask([texts.failed, texts.noAnswer], texts[to], () => each({}))
  }
}
