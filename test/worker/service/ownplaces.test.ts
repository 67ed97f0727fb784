import { expect, test } from 'vitest'
import { readConfig } from '../../../worker/config.ts'
import { listOwnPlaces } from '../../../worker/service/ownplaces.ts'

const list = (env: Record<string, string>) =>
  listOwnPlaces(readConfig({ DATA_DIR: '/nowhere', ...env }), true).map(
    ({ what, host, port, isApi, byName, base = '' }) =>
      `${what.replace(/(.*) of this service/, '$1')} ${host}:${port}${base}${isApi ? ' api' : ''}${byName ? ' by name' : ''}`,
  )

test('the places of a service on this machine', () => {
  const env = {
    DATABASE_URL: 'postgres://perdure:secret@127.0.0.1:54329/perdure',
    TEMPORAL_ADDRESS: '127.0.0.1:7233',
    TEMPORAL_GUARDED_PORTS: '20001, 20002',
    TEMPORAL_UI_URL: 'http://localhost:8080/',
    WORKER_METRICS_PORT: '9464',
    PUBLIC_URL: 'http://localhost:3000',
  }
  expect(list(env)).toEqual([
    'the database 127.0.0.1:54329',
    'the Temporal server 127.0.0.1:7233',
    'the Temporal server 127.0.0.1:20001',
    'the Temporal server 127.0.0.1:20002',
    'the Temporal server localhost:8080',
    'this service itself 127.0.0.1:9464',
    'this service itself 127.0.0.1:3000 api',
    'this service itself localhost:3000 api',
  ])
})

test('the places of a service behind a proxy, with servers elsewhere', () => {
  const env = {
    HOST: '0.0.0.0',
    DATABASE_URL: 'postgres://db.example/perdure',
    TEMPORAL_ADDRESS: '[2001:db8::7]:7233',
    TEMPORAL_UI_URL: 'https://temporal.example.com',
    PUBLIC_URL: 'https://example.com/perdure/',
    ALLOWED_HOSTS: 'flows.example.com, *.example.net',
  }
  expect(list(env)).toEqual([
    'the database db.example:5432',
    'the Temporal server [2001:db8::7]:7233',
    'the Temporal server [2001:db8::7]:7243',
    'the Temporal server temporal.example.com:443 by name',
    'this service itself 0.0.0.0:3000 api',
    ...['example.com', 'flows.example.com'].flatMap((name) =>
      [80, 443, 3000].map((port) => `this service itself ${name}:${port}/perdure api by name`),
    ),
  ])
})

test('hooks are exempt from the rules where the API is certain to be', () => {
  const isExempt = (env: Record<string, string>, servesApi: boolean) =>
    listOwnPlaces(readConfig(env), servesApi).some(({ isCertain }) => isCertain)
  expect(isExempt({}, true)).toBe(true)
  expect(isExempt({}, false)).toBe(true)
  expect(isExempt({ PUBLIC_URL: 'https://example.com' }, true)).toBe(true)
  expect(isExempt({ PUBLIC_URL: 'https://example.com' }, false)).toBe(false)
})

test('a database behind a socket is taken for one that also listens on this machine', () => {
  const [database] = list({ DATABASE_URL: 'postgres:///perdure?host=/var/run/postgresql&port=5433' })
  expect(database).toBe('the database 127.0.0.1:5433')
})
