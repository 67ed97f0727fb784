import { generateKeyPairSync, randomBytes, sign } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { checkpointText } from '../../../db/audit/checkpoints.ts'
import { readPemKeys } from '../../../db/audit/export/trust.ts'
import { reopenChain } from '../../../db/audit/reopen.ts'
import { genesisHash, hashLink } from '../../../db/audit/signing.ts'
import { serviceScope } from '../../../db/scope.ts'
import {
  exportChain,
  judgeText,
  perdure,
  readBlocks,
  runProgram,
  verifyText,
} from '../../support/audit/export.ts'
import { makeChains } from '../../support/chains.ts'
import { keep } from '../../support/keep.ts'
import { type Body, startService } from '../../support/service.ts'

const service = await keep(startService({ rateLimits: false }))
const { team, oldTeam, act, tamper, entries, adaptHead } = makeChains(service)
const folder = mkdtempSync(join(tmpdir(), 'perdure-export-'))
afterAll(() => rmSync(folder, { recursive: true }))

const readLines = (text: string): Body[] =>
  text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
const writeLines = (lines: unknown[]) => lines.map((line) => `${JSON.stringify(line)}\n`).join('')

/** The public keys of the service, as PEM. */
async function readKeys(): Promise<string> {
  const { body } = await service.call('GET', '/api/audit/public-key')
  return body.keys.map(({ publicKey }: Body) => publicKey).join('')
}

/** Runs the script of the guide, as it is printed, in the folder. */
function runScript(text: string) {
  writeFileSync(join(folder, 'verify.py'), readBlocks('python')[0]!)
  writeFileSync(join(folder, 'audit.ndjson'), text)
  return runProgram('python3', ['verify.py', 'audit.ndjson'], { cwd: folder })
}

describe('an export', () => {
  test('has all entries with what is hashed, is an entry itself, and ends with a checkpoint of that', async () => {
    const teamId = await team(4)
    const lines = readLines(await exportChain(service, teamId))
    expect(lines.map(({ type }) => type)).toEqual([
      'header',
      ...['entry', 'entry', 'entry', 'entry', 'entry', 'checkpoint', 'end'],
    ])
    const stored = await entries(teamId)
    expect(lines.slice(1, 6).map(({ seq, hash, prev }) => [seq, hash, prev])).toEqual(
      stored.map(({ seq, hash, prev }) => [seq, hash.toString('hex'), prev.toString('hex')]),
    )
    const exported = stored.at(-1)!
    expect([exported.action, exported.details, exported.userId]).toEqual([
      'AUDIT_EXPORTED',
      { from: 1, to: null },
      service.user.id,
    ])
    expect(JSON.parse(lines[1].details)).toMatchObject({ actor_name: 'Grace Hopper' })
    expect(lines[6]).toMatchObject({ seq: 5, hash: exported.hash.toString('hex') })
    expect(lines[7]).toEqual({
      type: 'end',
      entries: 5,
      last: { seq: 5, hash: exported.hash.toString('hex') },
    })
    const head = { method: 'HEAD', as: service.admin }
    expect((await service.request(`/api/audit/team/${teamId}/export`, head)).status).toBe(200)
    expect(await entries(teamId)).toHaveLength(5)
  })

  test('is for ADMINs of the team only, and a range must not be turned around', async () => {
    const ask = async (teamId: string, as: string | undefined, query = '') =>
      (await service.call('GET', `/api/audit/team/${teamId}/export${query}`, as)).status
    const other = await service.otherTeam()
    for (const role of ['BUILDER', 'OPERATOR'] as const)
      expect([role, await ask(service.teamId, (await service.signUp(role)).cookie)]).toEqual([role, 403])
    expect(await ask(service.teamId, await service.token('VIEWER'))).toBe(403)
    expect(await ask(other.teamId, (await service.signUp('BUILDER')).cookie)).toBe(403)
    expect(await ask(crypto.randomUUID(), service.admin)).toBe(404)
    expect(await ask(service.teamId, undefined)).toBe(401)
    for (const query of ['?from=2&to=1', '?from=0', '?to=1e3', '?from=9007199254740993'])
      expect([query, await ask(service.teamId, service.admin, query)]).toEqual([query, 400])
  })

  test('verifies by the command without a database, with noted keys, and by the script and OpenSSL as the guide prints them', {
    tags: 'long',
  }, async () => {
    const teamId = await team(6)
    await act(teamId, 'Zoë "quotes" \\ \u2028 \u{1f600} \u007f <end>')
    const text = await exportChain(service, teamId)
    const [file, key, wrong] = ['audit.ndjson', 'perdure.pem', 'wrong.pem'].map((name) => join(folder, name))
    const script = await runScript(text)
    expect(script).toMatchObject({ code: 0, err: '' })
    expect(script.out).toContain(`8 entries of ${teamId}`)
    expect(script.out).toContain('0 faults')
    writeFileSync(key!, await readKeys())
    const openssl = readBlocks('sh').find((block) => block.startsWith('openssl'))!
    expect(await runProgram('bash', ['-c', openssl], { cwd: folder })).toMatchObject({
      code: 0,
      out: 'Signature Verified Successfully\n',
    })
    const last = readLines(text).at(-1).last
    const good = await perdure(['audit', 'verify', '--file', file!, '--key', key!])
    expect(good).toMatchObject({ code: 0, err: '' })
    expect(good.out).toContain(`${teamId}  intact  8 entries, 1 to 8  last 8:${last.hash}`)
    expect(good.out).toMatch(/signed {2}Up to entry 8, .* with the key "k1"/)
    const own = await perdure(['audit', 'verify', teamId, '--file', '-'], {}, text)
    expect([own.code, own.out]).toEqual([0, expect.stringContaining('compare it, SHA-256 ')])
    const { publicKey } = generateKeyPairSync('ed25519')
    writeFileSync(wrong!, publicKey.export({ format: 'pem', type: 'spki' }))
    const strange = await perdure(['audit', 'verify', '--file', file!, '--key', wrong!])
    expect([strange.code, strange.out]).toEqual([1, expect.stringContaining('checkpoint_missing')])
    const noted = ['--checkpoint', `3:${'0'.repeat(64)}`]
    expect((await perdure(['audit', 'verify', '--file', file!, ...noted])).out).toContain(
      'checkpoint_mismatch',
    )
    expect((await perdure(['audit', 'verify', service.teamId, '--file', file!])).code).toBe(1)
    for (const args of [
      ['--file', join(folder, 'none')],
      ['--key', key!],
      ['--file', file!, '--key', file!],
    ])
      expect([args, (await perdure(['audit', 'verify', ...args])).code]).toEqual([args, 2])
  })

  test('of a part says that it is one, and begins at what a checkpoint has signed', async () => {
    const teamId = await team(6)
    await exportChain(service, teamId)
    for (let i = 0; i < 4; i++) await act(teamId)
    const text = await exportChain(service, teamId, '?from=8&to=10')
    const found = await verifyText(text)
    // The export is entry 12 itself, and the first that is signed from entry 10 on.
    expect(found).toMatchObject({ entries: 5, first: 8, findings: [], signed: { seq: 12 } })
    expect(found.partial).toEqual({ before: true, behind: true })
    const early = await verifyText(await exportChain(service, teamId, '?to=6'))
    expect(early).toMatchObject({ entries: 7, first: 1, findings: [], signed: { seq: 7 } })
    // Entry 7 is the first export, of which there is a checkpoint.
    const lines = readLines(text)
    expect(lines[1]).toMatchObject({ type: 'checkpoint', seq: 7, hash: lines[2].prev })
    lines[1].hash = '0'.repeat(64)
    expect(await judgeText(writeLines(lines))).toContain('checkpoint_invalid')
    expect((await runScript(text)).code).toBe(0)
    // A whole export that was made a part, so that its end need not be signed.
    const whole = readLines(await exportChain(service, teamId))
    const kept = whole.filter(({ type, seq }) => type === 'header' || (type === 'entry' && seq <= 9))
    const { seq, hash } = kept.at(-1)
    const end = { type: 'end', entries: 9, last: { seq, hash } }
    const cut = [{ ...kept[0], to: 9 }, ...kept.slice(1), end]
    expect(await judgeText(writeLines(cut))).toEqual(['checkpoint_missing'])
    expect((await runScript(writeLines(cut))).code).toBe(1)
    const rest = await verifyText(await exportChain(service, teamId, '?from=8'))
    expect(rest).toMatchObject({ first: 8, findings: [], partial: { before: true, behind: false } })
    expect(rest.signed?.seq).toBe(rest.last?.seq)
  })

  test('of a purged chain begins with the signed anchor, and a purge that nobody has signed is found', async () => {
    const teamId = await oldTeam([700, 400, 100, 40, 5])
    const path = `/api/audit/team/${teamId}`
    await service.call('PUT', `${path}/retention`, service.admin, { retentionDays: 30 })
    expect((await service.call('POST', `${path}/purge`, service.admin)).body.purgedCount).toBe(4)
    const text = await exportChain(service, teamId)
    expect(await verifyText(text)).toMatchObject({ first: 5, purgedUpTo: 4, findings: [] })
    expect((await runScript(text)).out).toContain('0 faults')
    const lines = readLines(text)
    const at = lines.findIndex(({ type }) => type === 'anchor')
    expect(await judgeText(writeLines(lines.toSpliced(at, 1)))).toEqual(
      expect.arrayContaining(['gap', 'anchor_missing']),
    )
    const forged = lines.map((line, i) =>
      i === at ? { ...line, baseSeq: 5, baseHash: lines[at + 1].hash } : line,
    )
    expect(await judgeText(writeLines(forged.toSpliced(at + 1, 1)))).toContain('anchor_invalid')
  })

  test('of a chain that was tampered with shows it, and is an entry of the instance; a break is named for ever', async () => {
    const teamId = await team(4)
    await tamper(`delete from audit_entries where team_id = '${teamId}' and seq = 4; ${adaptHead(teamId)}`)
    const text = await exportChain(service, teamId)
    expect(await judgeText(text)).toEqual(['checkpoint_missing'])
    expect((await runScript(text)).code).toBe(1)
    const noted = await service.store.db
      .selectFrom('auditEntries')
      .select('details')
      .where('action', '=', 'AUDIT_EXPORTED')
      .where('teamId', '=', '00000000-0000-0000-0000-000000000000')
      .executeTakeFirstOrThrow()
    expect(noted.details).toMatchObject({ brokenChain: teamId })
    const cli = { kind: 'SYSTEM', id: null, name: 'cli' } as const
    const operator = serviceScope(service.store, cli, [[teamId, 'ADMIN']], { instanceAdmin: true })
    const { seq } = await reopenChain(operator, teamId, { by: 'me', note: null })
    await act(teamId)
    const after = await verifyText(await exportChain(service, teamId))
    expect(after.findings).toEqual([])
    expect(after.breaks).toMatchObject([{ seq, signed: true }])
  })
})

describe('a deceiver', () => {
  /** An export with two checkpoints, and what it is made of. */
  async function make() {
    const teamId = await team(3)
    await exportChain(service, teamId)
    await act(teamId)
    return readLines(await exportChain(service, teamId))
  }

  test('who alters any value of any line is found out, by the command and by the script', async () => {
    const lines = await make()
    const passed: string[] = []
    for (const [at, line] of lines.entries()) {
      for (const [key, value] of Object.entries(line)) {
        // What a header says of the export itself is not signed.
        if (['exportedAt', 'to', 'keys'].includes(key)) continue
        const other =
          typeof value === 'number'
            ? value + 1
            : typeof value === 'string'
              ? value.replace(/[a-z\d](?=[^a-z\d]*$)/i, (sign) => (sign === '1' ? '2' : '1'))
              : { ...Object(value), seq: 77 }
        const text = writeLines(lines.with(at, { ...line, [key]: other }))
        if ((await judgeText(text)).length === 0) passed.push(`${at} ${key}`)
      }
    }
    expect(passed).toEqual([])
    // The script does not know signatures: it is asked for what it does check.
    for (const key of ['seq', 'ts', 'prev', 'hash', 'salt', 'core', 'details']) {
      const line = lines[2]
      const other = key === 'seq' ? 9 : `${line[key].slice(0, -2)}${line[key].endsWith('00') ? '11' : '00'}`
      const { code } = await runScript(writeLines(lines.with(2, { ...line, [key]: other })))
      expect([key, code]).toEqual([key, 1])
    }
  })

  test('who removes, doubles or swaps lines is found out', async () => {
    const lines = await make()
    const isNeeded = (at: number) => lines[at].type !== 'checkpoint' || at === lines.length - 2
    for (const [at, line] of lines.entries()) {
      const less = lines.toSpliced(at, 1)
      if (isNeeded(at)) expect([at, await judgeText(writeLines(less))]).not.toEqual([at, []])
      // To say the same checkpoint twice says nothing else.
      if (line.type !== 'checkpoint')
        expect([at, await judgeText(writeLines(lines.toSpliced(at, 0, line)))]).not.toEqual([at, []])
      const next = lines[at + 1]
      if (!next) continue
      const swapped = writeLines(lines.with(at, next).with(at + 1, line))
      expect([at, await judgeText(swapped)]).not.toEqual([at, []])
      if (line.type === 'entry' || next.type === 'end')
        expect([at, (await runScript(swapped)).code]).toEqual([at, 1])
    }
    expect(await verifyText('')).toMatchObject({ teamId: null, count: 1 })
  })

  test('who puts in entries of another team is found out', async () => {
    const [mine, other] = [await make(), await make()]
    expect(await judgeText(writeLines(mine.with(2, other[2])))).toContain('entry_modified')
    expect(await judgeText(writeLines(mine.with(0, other[0])))).toContain('entry_modified')
    expect(await judgeText(writeLines(mine.with(-2, other.at(-2))))).toContain('file_mismatch')
  })

  test('who writes lines that others read in another way is found out, however long they are', async () => {
    const lines = await make()
    const text = writeLines(lines)
    const hostile: Record<string, string | Buffer> = {
      'a key twice': text.replace('"type":"entry",', '"type":"entry","seq":1,'),
      'a number that is rounded': text.replace('"seq":2,', '"seq":9007199254740993,'),
      'another spelling of a number': text.replace('"seq":2,', '"seq":2.0,'),
      spaces: text.replace('"seq":2,', '"seq": 2,'),
      'more keys': text.replace('"type":"entry",', '"type":"entry","x":1,'),
      'wrong types': text.replace('"seq":2,', '"seq":"2",'),
      'no line breaks': text.replaceAll('\n', ' '),
      'line breaks of Windows': text.replaceAll('\n', '\r\n'),
      'a byte order mark': `\ufeff${text}`,
      'no end of the last line': text.trimEnd(),
      'an empty line': text.replace('\n', '\n\n'),
      'more behind the end': `${text}{}\n`,
      'a second export': text + text,
      'no UTF-8': Buffer.concat([Buffer.from(text), Buffer.from([0xff, 0x0a])]),
      'deep nesting': text.replace('\n', `\n${'['.repeat(200_000)}\n`),
      'a line of 20 MB': text.replace('\n', `\n"${'x'.repeat(20_000_000)}"\n`),
      'an endless line': text + 'x'.repeat(20_000_000),
      'a prototype': text.replace('"type":"entry",', '"type":"entry","__proto__":{},'),
      null: 'null\n',
    }
    for (const [name, file] of Object.entries(hostile)) {
      const { count, findings } = await verifyText(file)
      expect([name, count > 0 || findings.length > 0]).toEqual([name, true])
    }
  })

  test('who writes the whole chain anew and signs it with a key of their own is found out by a noted key', async () => {
    const lines = await make()
    const { teamId } = lines[0]
    const keys = generateKeyPairSync('ed25519')
    lines[0].keys[0].publicKey = keys.publicKey.export({ format: 'pem', type: 'spki' }).toString()
    let prev = genesisHash(teamId)
    let place: Body
    for (const line of lines) {
      if (line.type === 'entry') {
        line.core = line.core.replace('TEAM_UPDATED', 'TEAM_INVENTED')
        line.prev = prev.toString('hex')
        prev = hashLink({ teamId, seq: line.seq, prev, ts: line.ts, core: line.core })
        line.hash = prev.toString('hex')
        place = { seq: line.seq, hash: line.hash }
      } else if (line.type === 'checkpoint') {
        Object.assign(line, place)
        const signed = checkpointText({ ...line, hash: prev })
        line.signature = sign(null, Buffer.from(signed), keys.privateKey).toString('base64')
      } else if (line.type === 'end') line.last = place
    }
    const text = writeLines(lines)
    expect(await judgeText(text)).toEqual([])
    const noted = readPemKeys(await readKeys())
    expect(await judgeText(text, { keys: noted })).toEqual(['checkpoint_missing'])
    // With the key of the service in the file, the signatures are wrong.
    const { body } = await service.call('GET', '/api/audit/public-key')
    lines[0].keys[0].publicKey = body.keys[0].publicKey
    expect(await judgeText(writeLines(lines))).toContain('checkpoint_invalid')
    const bytes = randomBytes(64).toString('base64')
    expect(await judgeText(writeLines(lines.with(-2, { ...lines.at(-2), signature: bytes })))).toContain(
      'checkpoint_invalid',
    )
  })
})
