import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { shareService } from '../../support/service.ts'
import { watchThread } from '../../support/thread.ts'

const service = await keep(shareService())

type Rule = {
  name: string
  kind: string
  config: object
  severity?: string
  action?: string
  enabled?: boolean
}
type Entry = { type: string; passed: boolean; violationsFound: number; error?: string }
type Found = {
  message: string
  action: string
  severity: string
  confidence: number
  details: Record<string, unknown>
}

/** A team with these rules. */
async function makeTeam(...rules: Rule[]) {
  const { teamId, cookie } = await service.otherTeam()
  const call = (method: string, path: string, json?: object) =>
    service.call(method, `/api/guardrails/${path}`, cookie, json)
  const ids: string[] = []
  for (const rule of rules) {
    const { status, body } = await call('POST', `rules?teamId=${teamId}`, rule)
    expect(status, JSON.stringify(body)).toBe(201)
    ids.push(body.id)
  }
  const check = async (text: string, more: object = {}) => {
    const asked = { text, applyCustomRules: true, ...more }
    const { status, body } = await call('POST', `check?teamId=${teamId}`, asked)
    expect(status, JSON.stringify(body)).toBe(200)
    const { passed, violations, checks } = body as { passed: boolean; violations: Found[]; checks: Entry[] }
    const entry = checks.find(({ type }) => type === 'CUSTOM_RULE')!
    return { passed, violations, checks, entry, found: violations }
  }
  const tryOut = (json: object) => call('POST', `rules/test?teamId=${teamId}`, json)
  return { teamId, call, ids, check, tryOut }
}

const regex = (pattern: string, flags = '') => ({ name: pattern, kind: 'REGEX', config: { pattern, flags } })
const words = (keywords: string[], more: object = {}) => ({
  name: 'Words',
  kind: 'KEYWORD_LIST',
  config: { keywords, ...more },
})
const code = (code: string, name = 'Code') => ({ name, kind: 'JAVASCRIPT', config: { code } })
const placesIn = (text: string, found: Found[]) =>
  found.map(({ details }) => text.slice(details.start as number, details.end as number))

test('the matches of a pattern are violations, with the place of each and the severity and action of the rule', async () => {
  const rule = { ...regex('zebra\\s+\\d+', 'i'), name: 'No zebras', severity: 'CRITICAL', action: 'WARNED' }
  const { check, ids } = await makeTeam(rule)
  const text = '😀 Zebra 17, zebra  4'
  const { passed, violations, checks } = await check(text)
  const violation = {
    type: 'CUSTOM_RULE',
    severity: 'CRITICAL',
    action: 'WARNED',
    message: 'The text breaks the rule "No zebras"',
    confidence: 1,
  }
  const details = { ruleId: ids[0], ruleName: 'No zebras', kind: 'REGEX' }
  expect(violations).toEqual([
    { ...violation, details: { ...details, start: 3, end: 11 } },
    { ...violation, details: { ...details, start: 13, end: 21 } },
  ])
  expect(passed).toBe(true)
  expect(checks).toEqual([
    { type: 'CUSTOM_RULE', passed: true, violationsFound: 2, durationMs: expect.any(Number) },
  ])
})

test('the action of a rule wins over onViolation', async () => {
  const { check } = await makeTeam(
    { ...regex('stop'), action: 'BLOCKED' },
    { ...regex('look'), action: 'LOGGED' },
  )
  const blocked = await check('stop, look', { onViolation: 'LOGGED' })
  expect(blocked.passed).toBe(false)
  expect(blocked.found.map(({ action }) => action)).toEqual(['BLOCKED', 'LOGGED'])
  const logged = await check('look', { onViolation: 'BLOCKED' })
  expect(logged).toMatchObject({ passed: true, violations: [{ action: 'LOGGED' }] })
})

test('rules are applied only when that is asked for, only while they are enabled, and only to texts of their team', async () => {
  const { check, call, ids } = await makeTeam(regex('stop'), { ...regex('never'), enabled: false })
  expect((await check('stop', { applyCustomRules: false })).checks).toEqual([])
  expect((await check('never')).violations).toEqual([])
  expect((await check('stop')).violations).toHaveLength(1)
  await call('PUT', `rules/${ids[0]}`, { config: { pattern: 'halt' } })
  expect((await check('stop')).violations).toEqual([])
  expect((await check('halt')).violations).toHaveLength(1)
  await call('PUT', `rules/${ids[0]}`, { enabled: false })
  expect(await check('halt')).toMatchObject({ violations: [], entry: { violationsFound: 0, passed: true } })
  await call('PUT', `rules/${ids[0]}`, { enabled: true })
  await call('DELETE', `rules/${ids[0]}`)
  expect((await check('halt')).violations).toEqual([])
  const other = await makeTeam()
  expect(await other.check('stop never halt')).toMatchObject({ violations: [], entry: { passed: true } })
})

test('rules that are changed and deleted while texts are checked leave every check whole', async () => {
  const { check, call, ids } = await makeTeam(regex('stop'))
  const checks = Array.from({ length: 20 }, () => check('stop'))
  await call('PUT', `rules/${ids[0]}`, { name: 'Other' })
  const more = Array.from({ length: 20 }, () => check('stop'))
  await call('DELETE', `rules/${ids[0]}`)
  for (const { entry, violations } of await Promise.all([...checks, ...more])) {
    expect(entry.error).toBeUndefined()
    expect(violations.length).toBeLessThanOrEqual(1)
  }
  expect((await check('stop')).violations).toEqual([])
})

test.each<[string, string, string[]]>([
  ['as it is', 'Project Zebra begins', ['Project Zebra']],
  ['in another case', 'pROJECT zEBRA', ['pROJECT zEBRA']],
  ['in full width', 'Ｐｒｏｊｅｃｔ　Ｚｅｂｒａ', ['Ｐｒｏｊｅｃｔ　Ｚｅｂｒａ']],
  ['with Cyrillic letters', 'Prоjесt Zеbrа', ['Prоjесt Zеbrа']],
  ['with zero-width characters', 'Pro\u200bject Ze\u200dbra', ['Pro\u200bject Ze\u200dbra']],
  ['with accents', 'Próject Zébra', ['Próject Zébra']],
  ['in base64', `see ${btoa('the Project Zebra begins')}.`, [expect.any(String) as never]],
  ['in HTML', 'P&#114;oject Ze&#98;ra', ['P&#114;oject Ze&#98;ra']],
  ['in a URL', 'a?b=Project%20Zebra', ['Project%20Zebra']],
  ['within a longer word', 'Project Zebrafish', []],
  ['twice', 'project zebra, PROJECT ZEBRA', ['project zebra', 'PROJECT ZEBRA']],
])('a keyword is found %s', async (_, text, places) => {
  const { check } = await keywords
  const { found, entry } = await check(text)
  expect(placesIn(text, found)).toEqual(places)
  expect(entry).not.toHaveProperty('error')
})
const keywords = makeTeam(words(['Project Zebra', 'zzz']))

test('a keyword list may look within words, and mind case', async () => {
  const within = await makeTeam(words(['cat'], { wholeWord: false }))
  expect(placesIn('concatenate Cat', (await within.check('concatenate Cat')).found)).toEqual(['cat', 'Cat'])
  const exact = await makeTeam(words(['ACME'], { caseSensitive: true }))
  const text = 'ACME acme ACMEs ＡＣＭＥ'
  expect(placesIn(text, (await exact.check(text)).found)).toEqual(['ACME'])
  const han = await makeTeam(words(['斑马', 'résumé', 'c++', '😀']))
  const mixed = '我们的斑马计划 resume C++, 😀'
  expect(placesIn(mixed, (await han.check(mixed)).found)).toEqual(['斑马', 'resume', 'C++', '😀'])
})

test('5,000 keywords are looked for in 100,000 characters, and hold up no other request', {
  timeout: 60_000,
}, async () => {
  const all = Array.from({ length: 5_000 }, (_, n) => `secret project ${n} of ${(n * 7_919) % 10_007}`)
  const { check } = await makeTeam(words(all))
  const text = `${'secret project of nobody 17 '.repeat(3_550)} ${all[4_999]} ${all[0]}`
  const watch = watchThread()
  const { found, entry } = await check(text)
  expect(watch.stop()).toBeLessThan(400)
  expect(entry.error).toBeUndefined()
  expect(placesIn(text, found)).toEqual([all[4_999], all[0]])
  const one = placesIn(all[17]!, (await check(all[17]!)).found)
  expect(one).toEqual([all[17]])
})

test('of many matches the first 50 are told one by one, and how many there are besides', async () => {
  const { check } = await makeTeam(
    regex('a'),
    words(['b']),
    code('return {violations: text.split("").map(() => ({}))}'),
  )
  const { found } = await check('a b '.repeat(60).trimEnd())
  const messages = (name: string) =>
    found.filter(({ details }) => details.ruleName === name).map(({ message }) => message)
  for (const name of ['a', 'Words', 'Code']) expect(messages(name)).toHaveLength(51)
  expect(messages('a').at(-1)).toBe('The text breaks the rule "a" in 10 more places')
  expect(messages('Code').at(-1)).toBe('The text breaks the rule "Code" in 189 more places')
  const many = await check('a'.repeat(5_000))
  expect(many.found.at(-1)!.message).toMatch(/"(a|Code)" in /)
  expect(many.found.map(({ message }) => message)).toContain(
    'The text breaks the rule "a" in at least 50 more places',
  )
})

test.each([
  ['(a+)+$', 'a'.repeat(99_999)],
  ['^(\\w+\\s?)*$', `${'a'.repeat(99_998)}!`],
  ['(x+x+)+y', 'x'.repeat(100_000)],
  ['(.*a){20}b', 'a'.repeat(100_000)],
  ['^(([a-z])+.)+[A-Z]([a-z])+$', 'a'.repeat(100_000)],
  ['(a|a)*b', 'a'.repeat(100_000)],
  ['(\\s*)*;', ' '.repeat(100_000)],
  ['([\\w.-]+)+@x', 'a.'.repeat(50_000)],
])('a pattern that would explode elsewhere is applied in linear time: %s', async (pattern, text) => {
  const { check } = await makeTeam(regex(pattern))
  const { entry } = await check(text)
  expect(entry.error).toBeUndefined()
})

test('a pattern that takes too long is named, and the others report what they found', {
  tags: 'long',
  timeout: 60_000,
}, async () => {
  const slow = { ...regex('a.*b|a.*c|a.*d|a.*e|a.*f|a'), name: 'Slow' }
  const { check } = await makeTeam(regex('^a{5}'), slow, code('return {flagged: true, message: "seen"}'))
  const watch = watchThread()
  const { entry, passed, found } = await check('a'.repeat(100_000))
  expect(watch.stop()).toBeLessThan(400)
  expect(entry).toMatchObject({
    passed: false,
    error: 'These rules could not be applied: "Slow" (it took too long)',
  })
  expect(passed).toBe(false)
  expect(found.map(({ message }) => message)).toEqual([
    'The text breaks the rule "^a{5}"',
    'Rule "Code": seen',
  ])
  expect((await check('bcd')).entry.error).toBeUndefined()
})

test('code sees the text, and says by what it returns what is wrong with it', { tags: 'long' }, async () => {
  const returns = async (body: string, text = 'a zebra') => {
    const { check } = await makeTeam(code(body))
    const { found, entry } = await check(text)
    return {
      error: entry.error,
      found: found.map(({ message, confidence, details }) => [
        message,
        confidence,
        details.start,
        details.end,
      ]),
    }
  }
  const whole = (confidence = 1) => ['The text breaks the rule "Code"', confidence, undefined, undefined]
  expect(await returns('return text.includes("zebra")')).toEqual({ found: [whole()] })
  expect(await returns('return text.includes("okapi")')).toEqual({ found: [] })
  expect(await returns('text.length')).toEqual({ found: [] })
  expect(await returns('return {flagged: text.length > 3, confidence: 0.5}')).toEqual({ found: [whole(0.5)] })
  expect(await returns('return {flagged: false}')).toEqual({ found: [] })
  expect(
    await returns(
      'await null; const m = /zebra/.exec(text); return {violations: [{start: m.index, end: m.index + 5, message: "A zebra"}]}',
    ),
  ).toEqual({
    found: [['Rule "Code": A zebra', 1, 2, 7]],
  })
  expect(await returns('return {violations: []}')).toEqual({ found: [] })
  const faulty = (why: RegExp) => ({ error: expect.stringMatching(why), found: [] })
  for (const body of ['return "yes"', 'return 1', 'return {}', 'return []', 'return {violations: true}'])
    expect(await returns(body)).toEqual(faulty(/"Code" \(its code returned neither true nor false/))
  for (const body of [
    'return {violations: [{start: 0, end: 99}]}',
    'return {violations: [{start: 3, end: 2}]}',
    'return {violations: [{start: 1}]}',
    'return {violations: [{start: "0", end: 1}]}',
  ])
    expect(await returns(body)).toEqual(faulty(/violations\[0\] with a place that is not in the text/))
  expect(await returns('return {flagged: true, confidence: 2}')).toEqual(
    faulty(/confidence that is not from 0 to 1/),
  )
  expect(await returns('throw new Error(text)')).toEqual({
    error: 'These rules could not be applied: "Code" (its code failed)',
    found: [],
  })
})

test.each<[string, string, RegExp]>([
  ['an endless loop', 'for (;;);', /took longer than 0.25 s/],
  [
    'an endless promise',
    'const f = async () => { for (;;) await null }; await f()',
    /took longer than 0.25 s/,
  ],
  ['a promise that nothing settles', 'await new Promise(() => {})', /its code failed/],
  ['a pattern that backtracks', 'return /^(a+)+$/.test("a".repeat(40) + "!")', /took longer than 0.25 s/],
  ['a memory bomb', 'const a = []; for (;;) a.push(new Array(100_000).fill(text))', /memory|took longer/],
  ['a string bomb', 'let s = "a"; for (;;) s += s', /memory|took longer|failed/],
  ['endless recursion', 'const f = () => f(); f()', /its code failed/],
])('code that is %s is ended and named, and the process lives', async (_, body, why) => {
  const { check } = await makeTeam(regex('stop'), code(body))
  const { entry, found, passed } = await check('stop')
  expect(passed).toBe(false)
  expect(entry.error).toMatch(/^These rules could not be applied: "Code" \(/)
  expect(entry.error).toMatch(why)
  expect(found).toHaveLength(1)
  expect((await check('fine')).found).toEqual([])
})

test.each([
  'return typeof process !== "undefined" || typeof fetch !== "undefined" || typeof XMLHttpRequest !== "undefined"',
  'try { return Boolean(require("fs").readFileSync("/etc/passwd")) } catch { return false }',
  'try { return Boolean(require("child_process")) } catch { return false }',
  'return this.constructor.constructor("return typeof process")() !== "undefined"',
  'return (async () => {}).constructor("return typeof process")() instanceof Promise && await (async () => {}).constructor("return typeof process")() !== "undefined"',
  'return Object.getPrototypeOf(text).constructor.constructor("return typeof globalThis.process")() !== "undefined"',
  'return typeof globalThis.WebAssembly !== "undefined" && typeof globalThis.SharedArrayBuffer === "object"',
  'Array.prototype.map = () => ["changed"]; Object.prototype.flagged = true; return false',
])('code does not get out of its sandbox: %s', async (body) => {
  const { check } = await makeTeam(
    code(body),
    code('return [1].map((n) => n)[0] !== 1 || ({}).flagged', 'After'),
  )
  const { entry, found } = await check('text')
  expect(entry.error).toBeUndefined()
  expect(found).toEqual([])
})

test('all code together has two seconds of processor time', { timeout: 60_000 }, async () => {
  const burn = 'const end = Date.now() + 230; while (Date.now() < end); return false'
  const { check } = await makeTeam(
    ...Array.from({ length: 12 }, (_, n) => code(`for (;;) ${n};`, `Code ${n}`)),
    code(burn, 'Last'),
  )
  const { entry } = await check('x')
  expect(entry.error).toMatch(/"Code 0" \(the code took longer than 0.25 s of processor time\)/)
  expect(entry.error).toMatch(/and \d more$/)
  expect(entry.error).toMatch(/there was no time left for it/)
})

test('a text is not told in what a check says of its rules', async () => {
  const canary = 'canary-4711'
  const { check } = await makeTeam(
    code('throw new Error(text)'),
    regex('canary'),
    code('return text', 'Echo'),
  )
  const body = await check(canary)
  expect(body.entry.error).toMatch(/"Echo" \(its code returned neither/)
  expect(JSON.stringify(body)).not.toContain(canary)
})

test('a rule that is stored or not is tried on samples, and nothing of it is stored', async () => {
  const { tryOut, ids, check } = await makeTeam({ ...regex('zebra', 'i'), enabled: false })
  const stored = await tryOut({ ruleId: ids[0], samples: ['no', 'a Zebra and a zebra', ''] })
  expect(stored).toMatchObject({
    status: 200,
    body: { results: [{ flagged: false, matches: [] }, {}, { flagged: false }] },
  })
  expect(stored.body.results[1]).toEqual({
    flagged: true,
    matches: [
      { start: 2, end: 7, confidence: 1 },
      { start: 14, end: 19, confidence: 1 },
    ],
    more: 0,
    durationMs: expect.any(Number),
  })
  const { body } = await tryOut({
    rule: {
      kind: 'JAVASCRIPT',
      config: { code: 'if (text === "b") {\n  null.x }\nreturn {flagged: text === "c", message: "It is c"}' },
    },
    samples: ['a', 'b', 'c'],
  })
  expect(body.results).toMatchObject([
    { flagged: false },
    { flagged: false, error: expect.stringMatching(/^the code, line 2, column \d+: TypeError/) },
    { flagged: true, matches: [{ message: 'It is c', confidence: 1 }] },
  ])
  const first = await tryOut({ rule: { kind: 'JAVASCRIPT', config: { code: 'null.x' } }, samples: ['a'] })
  expect(first.body.results[0].error).toMatch(/^the code, line 1, column [1-6]: TypeError/)
  expect((await check('zebra')).violations).toEqual([])
})

test('a trial takes one rule, and at most 20 samples', async () => {
  const { tryOut, ids } = await makeTeam({ ...regex('a'), enabled: false })
  const rule = { kind: 'REGEX', config: { pattern: 'a' } }
  for (const [json, path] of [
    [{ samples: ['a'] }, 'rule'],
    [{ rule, ruleId: ids[0], samples: ['a'] }, 'rule'],
    [{ rule, samples: [] }, 'samples'],
    [{ rule, samples: Array(21).fill('a') }, 'samples'],
    [{ rule, samples: ['a'.repeat(100_001)] }, 'samples[0]'],
    [{ rule, samples: [1] }, 'samples[0]'],
  ] as const) {
    const { status, body } = await tryOut(json)
    expect(status).toBe(400)
    expect(body.errors.map(({ path }: { path: string }) => path)).toEqual([path])
  }
  const { body } = await tryOut({ rule, samples: Array(20).fill('a') })
  expect(body.results).toHaveLength(20)
})

test('a rule that asks a model is an error of its check where the team has none', async () => {
  const { check } = await makeTeam({
    name: 'Advice',
    kind: 'LLM_PROMPT',
    config: { instruction: 'Gives legal advice' },
  })
  const { entry, passed, found } = await check('You should sue them.')
  expect(entry.error).toMatch(/^These rules could not be applied: "Advice" \(/)
  expect({ passed, found }).toEqual({ passed: false, found: [] })
})
