import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { readConfig } from '../worker/config.ts'
import { ROOT, readCompose, readDockerfile, readIgnored } from './image/compose.ts'

const services = readCompose({
  PERDURE_KEYS: `k1:${Buffer.alloc(32, 1).toString('base64')}`,
  ADMIN_PASSWORD: 'correct horse battery staple',
  POSTGRES_PASSWORD: 'x',
})
const guide = readFileSync(`${ROOT}api/docs/guide/operating.md`, 'utf8')

test.each(['api', 'worker'])(
  'the %s of temporal-dev.yml has the time to stop that the guide demands',
  (name) => {
    const { environment, stop_grace_period: period = '' } = services[name]!
    const { stopGraceMs, modelStopGraceMs } = readConfig(environment)
    const [, more] = /wait for the longer of the two and (\d+) seconds more/.exec(guide) ?? []
    const demanded = Math.max(stopGraceMs, modelStopGraceMs) / 1_000 + Number(more)
    expect(Number(/^(\d+)s$/.exec(period)?.[1])).toBeGreaterThanOrEqual(demanded)
  },
)

test('every variable of temporal-dev.yml is one of the service, with a value that it takes', () => {
  for (const { environment, build } of Object.values(services))
    if (build) expect(() => readConfig(environment)).not.toThrow()
})

test('what git leaves out, and what may hold secrets, is not copied into the image', () => {
  const isIgnored = readIgnored()
  const lines = readFileSync(`${ROOT}.gitignore`, 'utf8').split('\n').filter(Boolean)
  const paths = lines.map((line) => line.replace(/\/$/, '/x').replace('*', 'x'))
  for (const path of [...paths, '.env', '.env.local', '.git/config'])
    expect([path, isIgnored(path)]).toEqual([path, true])
  for (const path of ['package.json', 'api/console/index.html', 'worker/api.ts', 'db/migrations/0001.sql'])
    expect([path, isIgnored(path)]).toEqual([path, false])
})

test('the image installs its dependencies before it copies the sources, and runs as another user than root', () => {
  const steps = readDockerfile(services)
  const at = (word: string, rest: RegExp) =>
    steps.findIndex((step) => step.word === word && rest.test(step.rest))
  expect(at('RUN', /^npm ci/)).toBeLessThan(at('COPY', /^\. \.$/))
  expect(at('RUN', /prepare/)).toBeGreaterThan(at('COPY', /^\. \.$/))
  expect(steps.at(-1)).toEqual({ word: 'USER', rest: 'node' })
})
