import { existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { getHeapStatistics } from 'node:v8'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ConfigError, readConfig } from '../../worker/config.ts'
import { readKeys } from '../../worker/keys.ts'
import { listOpenings } from '../../worker/openings.ts'

const KEY = Buffer.alloc(32, 7).toString('base64')
const OTHER = Buffer.alloc(32, 9).toString('base64')

describe('readConfig', () => {
  test('an empty environment gives the default values', () => {
    const config = readConfig({ PATH: '/bin' })
    expect(config).toMatchObject({
      port: { number: 3000, byHand: false },
      host: '127.0.0.1',
      publicUrl: 'http://127.0.0.1:3000',
      temporal: { address: undefined, namespace: 'default', tls: false },
      taskQueue: 'perdure',
      sealBound: false,
      egress: { allowLoopback: true, allow: [], deny: [] },
      logLevel: 'info',
      replyStreams: { ofPerson: 10, ofTeam: 200, ofVisitor: 2 },
    })
    expect(config.dataDir).toBe(join(process.cwd(), '.perdure'))
  })

  test('room for values is chosen by the heap and the memory of the machine, and can be set', () => {
    const chosen = readConfig({}).budgetBytes
    expect(chosen).toBeGreaterThanOrEqual(32 * 1_048_576)
    expect(chosen).toBeLessThanOrEqual(Math.max(32 * 1_048_576, getHeapStatistics().heap_size_limit / 4))
    expect(readConfig({ MEMORY_BUDGET_MB: '100' }).budgetBytes).toBe(100 * 1_048_576)
  })

  test('a text that could not be checked does not pass, unless that is set', () => {
    expect(readConfig({}).guardrailOnError).toBe('closed')
    expect(readConfig({ GUARDRAIL_ON_ERROR: 'open' }).guardrailOnError).toBe('open')
    expect(() => readConfig({ GUARDRAIL_ON_ERROR: 'ajar' })).toThrow('GUARDRAIL_ON_ERROR')
  })

  test('a vendor of models may be silent for 30 seconds, or as long as is set', () => {
    expect(readConfig({}).modelSilenceMs).toBe(30_000)
    expect(readConfig({ MODEL_SILENCE_SECONDS: '5' }).modelSilenceMs).toBe(5_000)
    expect(() => readConfig({ MODEL_SILENCE_SECONDS: '0' })).toThrow('MODEL_SILENCE_SECONDS')
  })

  test('a port that is set to its default still counts as set by hand', () => {
    expect(readConfig({ PORT: '3000' }).port).toEqual({ number: 3000, byHand: true })
  })

  test('an empty value counts as not set', () => {
    expect(readConfig({ PORT: '', DATABASE_URL: ' ' })).toMatchObject({
      port: { byHand: false },
      databaseUrl: undefined,
    })
  })

  test('one error names all wrong variables, with reasons but without values', () => {
    const wrong = {
      PORT: '99999',
      HOST: 'not a host',
      PUBLIC_URL: 'ftp://example.com',
      DATABASE_URL: 'mysql://root:hunter2@db/x',
      TEMPORAL_ADDRESS: 'temporal',
      TEMPORAL_TLS: 'perhaps',
      TEMPORAL_TLS_SERVER_CA_CERT_PATH: '/nowhere/hunter2',
      TEMPORAL_TLS_CLIENT_CERT_PATH: import.meta.filename,
      TEMPORAL_TLS_CLIENT_KEY_PATH: import.meta.filename,
      TEMPORAL_TLS_SERVER_NAME: 'not a name',
      TEMPORAL_GUARDED_PORTS: '7243, x',
      ADMIN_EMAIL: 'nobody',
      ADMIN_PASSWORD: 'hunter2',
      SIGNUP: 'maybe',
      SMTP_URL: 'smtp://user:hunter2%ff@mail.example.com',
      MAIL_FROM: 'Perdure <perdure@example.com>',
      DEFAULT_PLAN: 'free',
      PERDURE_KEYS: 'k1:c2hvcnQ=',
      EGRESS_ALLOW: '10.0.0.0/8,no nonsense',
      EGRESS_DENY: '10.0.0.0/33, 10.1, *, api.example.com:80',
      ALLOWED_HOSTS: 'app.example.com, https://x',
      EGRESS: 'all',
      LOG_LEVEL: 'loud',
      MEMORY_BUDGET_MB: '31',
      POOL_SIZE: '0',
      SEAL_VERSION: '3',
      CHAT_STREAMS_PER_USER: '0',
      CHAT_STREAMS_PER_TEAM: 'many',
      CHAT_STREAMS_PER_VISITOR: '-1',
    }
    let message = ''
    try {
      readConfig(wrong)
    } catch (error) {
      expect(error).toBeInstanceOf(ConfigError)
      message = (error as Error).message
    }
    const lines = message.split('\n')
    expect(lines.map((line) => line.split(' ')[0]).sort()).toEqual(Object.keys(wrong).sort())
    expect(message).toContain('PORT must be at most 65535')
    expect(message).toMatch(/^EGRESS_ALLOW must be .* unlike "no nonsense"$/m)
    expect(message).toMatch(
      /^EGRESS_DENY .* unlike "10.0.0.0\/33" and "10.1" and "\*" and "api.example.com:80"$/m,
    )
    expect(message).not.toContain('hunter2')
  })

  const openings = (env: Record<string, string>) => {
    const { egress, signUp } = readConfig(env)
    return { loopback: egress.allowLoopback, signUp }
  }

  test('sign-up and egress to loopback are open by default only where everything is loopback', () => {
    const both = { loopback: true, signUp: 'open' }
    const local = ['http://localhost:8080', 'http://[::1]:3000', 'https://app.localhost', 'http://127.0.0.9']
    for (const PUBLIC_URL of local) expect([PUBLIC_URL, openings({ PUBLIC_URL })]).toEqual([PUBLIC_URL, both])
    for (const HOST of ['::1', '127.0.0.2', 'localhost'])
      expect([HOST, openings({ HOST })]).toEqual([HOST, both])
    const others: Record<string, string>[] = [
      { HOST: '0.0.0.0' },
      { HOST: '::' },
      { HOST: '0.0.0.0', PUBLIC_URL: 'http://localhost:3000' },
      { PUBLIC_URL: 'https://perdure.example.com' },
      { PUBLIC_URL: 'http://192.168.0.9:3000' },
      { PUBLIC_URL: 'http://localhost.example.com' },
      { PROXY_HOPS: '1' },
      { ALLOWED_HOSTS: 'perdure.example.com' },
    ]
    for (const env of others)
      expect([env, openings(env)]).toEqual([env, { loopback: false, signUp: 'closed' }])
    expect(readConfig({ HOST: '0.0.0.0' }).publicUrl).toBe('http://localhost:3000')
  })

  test('what an operator opens is open wherever the service listens, and never open by default', () => {
    const HOST = '0.0.0.0'
    expect(openings({ HOST, SIGNUP: 'open' }).signUp).toBe('open')
    expect(openings({ SIGNUP: 'closed' }).signUp).toBe('closed')
    expect(readConfig({ HOST, EGRESS: 'any' }).egress).toEqual({
      allowLoopback: true,
      allow: ['0.0.0.0/0', '::/0'],
      deny: [],
    })
    const { allow } = readConfig({ EGRESS_ALLOW: '10.0.0.0/8, fd00::/8' }).egress
    expect(allow).toEqual(['10.0.0.0/8', 'fd00::/8'])
    const { deny } = readConfig({
      EGRESS: 'any',
      EGRESS_DENY: '10.0.0.5,, *.corp.example , münchen.de',
    }).egress
    expect(deny).toEqual(['10.0.0.5', '*.corp.example', 'münchen.de'])
    expect(readConfig({}).openByDefault).toEqual({ signUp: true, loopback: true })
    expect(readConfig({ HOST }).openByDefault).toEqual({ signUp: false, loopback: false })
    const byHand = readConfig({ SIGNUP: 'open', EGRESS: 'any' }).openByDefault
    expect(byHand).toEqual({ signUp: false, loopback: false })
  })

  test('what is open is said with what opened it', () => {
    const list = (env: Record<string, string>) => listOpenings(readConfig(env))
    expect(list({})).toEqual([
      'sign-up for everybody (until a request comes through a proxy)',
      "this machine's loopback addresses for workflows (until a request comes through a proxy)",
    ])
    expect(list({ PROXY_HOPS: '1' })).toEqual([])
    expect(list({ HOST: '::', SIGNUP: 'open', EGRESS_ALLOW: '10.0.0.0/8' })).toEqual([
      'sign-up for everybody (SIGNUP=open)',
      '10.0.0.0/8 for workflows (EGRESS_ALLOW)',
    ])
    expect(list({ SIGNUP: 'closed', EGRESS: 'any' })).toEqual(['all addresses for workflows (EGRESS=any)'])
  })

  test('ALLOWED_HOSTS are read in lower case, and DEFAULT_PLAN is that of new teams', () => {
    const { allowedHosts } = readConfig({ ALLOWED_HOSTS: 'App.example.com, *.example.net' })
    expect(allowedHosts).toEqual(['app.example.com', '*.example.net'])
    expect(readConfig({}).defaultPlan).toBe('ENTERPRISE')
    expect(readConfig({ DEFAULT_PLAN: 'FREE' }).defaultPlan).toBe('FREE')
  })

  test('e-mail addresses count as confirmed only where nobody else can reach the service', () => {
    expect(readConfig({})).toMatchObject({ emailProof: 'none', smtp: undefined })
    for (const env of [
      { HOST: '0.0.0.0' },
      { HOST: '0.0.0.0', SIGNUP: 'open' },
      { PUBLIC_URL: 'https://perdure.example.com' },
      { PROXY_HOPS: '1' },
      { ALLOWED_HOSTS: 'perdure.example.com' },
      { SIGNUP: 'closed' },
    ])
      expect([env, readConfig(env).emailProof]).toEqual([env, 'operator'])
    const own = { HOST: '::1', PUBLIC_URL: 'http://localhost:8080', SIGNUP: 'open' }
    expect(readConfig(own).emailProof).toBe('none')
  })

  test('SMTP_URL names the server that sends mail, and a password goes there encrypted only', () => {
    const read = (SMTP_URL: string) => readConfig({ SMTP_URL, MAIL_FROM: 'perdure@example.com' })
    expect(read('smtps://ada%40x:p%3Aw@mail.example.com')).toMatchObject({
      emailProof: 'mail',
      smtp: {
        host: 'mail.example.com',
        port: 465,
        tls: 'always',
        auth: { user: 'ada@x', pass: 'p:w' },
        from: 'perdure@example.com',
      },
    })
    const facts = (url: string) => {
      const { host, port, tls } = read(url).smtp!
      return [host, port, tls]
    }
    expect(facts('smtp://ada:pw@mail.example.com')).toEqual(['mail.example.com', 587, 'required'])
    expect(facts('smtp://mail.example.com:25')).toEqual(['mail.example.com', 25, 'offered'])
    expect(facts('smtp://[::1]:1025')).toEqual(['::1', 1025, 'never'])
    expect(() => readConfig({ SMTP_URL: 'smtp://localhost', PORT: 'x' })).toThrow(
      /PORT .*\nMAIL_FROM must be set, because SMTP_URL is/,
    )
    for (const SMTP_URL of ['http://x', 'smtp://x/path', 'smtp://x?tls=no', 'smtp:'])
      expect(() => readConfig({ SMTP_URL, MAIL_FROM: 'a@example.com' })).toThrow(/^SMTP_URL must be/)
  })

  test('ADMIN_PASSWORD must satisfy the rules for all passwords', () => {
    expect(() => readConfig({ ADMIN_PASSWORD: 'elevenchars' })).toThrow(
      'ADMIN_PASSWORD must have at least 12',
    )
    expect(() => readConfig({ ADMIN_PASSWORD: 'password1234' })).toThrow(
      'ADMIN_PASSWORD is too easy to guess',
    )
    expect(readConfig({ ADMIN_PASSWORD: 'twelve marks' }).admin.password).toBe('twelve marks')
  })

  test('an API key for Temporal switches TLS on, unless TEMPORAL_TLS is false', () => {
    expect(readConfig({ TEMPORAL_API_KEY: 'x' }).temporal.tls).toBe(true)
    expect(readConfig({ TEMPORAL_API_KEY: 'x', TEMPORAL_TLS: 'false' }).temporal.tls).toBe(false)
  })

  test('traces go to the OTLP address for traces as it is, or to /v1/traces of the general one', () => {
    expect(readConfig({}).tracing).toBe(undefined)
    const all = { OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/' }
    expect(readConfig(all).tracing).toEqual({
      url: 'http://collector:4318/v1/traces',
      sampler: 'parentbased_always_on',
      ratio: 1,
    })
    const own = { ...all, OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'https://traces.example.com/in' }
    expect(readConfig(own).tracing?.url).toBe('https://traces.example.com/in')
    const part = { ...all, OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.25' }
    expect(readConfig(part).tracing).toMatchObject({ sampler: 'traceidratio', ratio: 0.25 })
    expect(readConfig({ ...all, OTEL_SDK_DISABLED: 'true' }).tracing).toBe(undefined)
    expect(readConfig({ ...all, OTEL_TRACES_EXPORTER: 'none' }).tracing).toBe(undefined)
  })

  test("OpenTelemetry's variables are read only if one of the addresses is set", () => {
    const other = { OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc', OTEL_TRACES_SAMPLER: 'jaeger_remote' }
    expect(readConfig(other).tracing).toBe(undefined)
    const wrong = { ...other, OTEL_EXPORTER_OTLP_ENDPOINT: 'collector:4317', PORT: 'x' }
    expect(() => readConfig(wrong)).toThrow(
      /PORT .*\nOTEL_EXPORTER_OTLP_ENDPOINT .*\nOTEL_EXPORTER_OTLP_PROTOCOL must be http\/protobuf.*\nOTEL_TRACES_SAMPLER/,
    )
  })

  test('METRICS_TOKEN must have 16 characters that fit in a header', () => {
    expect(readConfig({ METRICS_TOKEN: 'abcdefghij0123456789+/=' }).metricsToken).toBe(
      'abcdefghij0123456789+/=',
    )
    expect(readConfig({ WORKER_METRICS_PORT: '9464' }).workerMetricsPort).toBe(9464)
    for (const METRICS_TOKEN of ['short', 'has a space in the middle'])
      expect(() => readConfig({ METRICS_TOKEN })).toThrow(/^METRICS_TOKEN /)
  })

  test('the first of several keys is the current one', () => {
    const { keys } = readConfig({ PERDURE_KEYS: `new:${KEY},old:${OTHER}` })
    expect(keys?.current).toBe('new')
    expect(keys?.byId.get('old')).toEqual(Buffer.alloc(32, 9))
    expect(() => readConfig({ PERDURE_KEYS: `a:${KEY},a:${OTHER}` })).toThrow(/PERDURE_KEYS/)
  })
})

describe('readKeys', () => {
  let dataDir: string
  beforeEach(() => {
    dataDir = mkdtempSync(join(tmpdir(), 'perdure-keys-'))
  })
  afterEach(() => rmSync(dataDir, { recursive: true }))

  test('generates keys once, readable only by the owner, and finds them again', () => {
    const made = readKeys({ keys: undefined, dataDir }, true)
    expect(statSync(join(dataDir, 'keys.json')).mode & 0o777).toBe(0o600)
    expect(readKeys({ keys: undefined, dataDir }, false)).toEqual(made)
  })

  test('generates no keys for processes that must share them', () => {
    expect(() => readKeys({ keys: undefined, dataDir }, false)).toThrow(/PERDURE_KEYS must be set/)
    expect(existsSync(join(dataDir, 'keys.json'))).toBe(false)
  })

  test('a broken key file is refused and not replaced', () => {
    writeFileSync(join(dataDir, 'keys.json'), '{"current":"k1","keys":{"k1":"short"}}')
    expect(() => readKeys({ keys: undefined, dataDir }, true)).toThrow(/not a key file/)
  })
})
