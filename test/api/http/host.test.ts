import { expect, test } from 'vitest'
import { keep } from '../../support/keep.ts'
import { startService } from '../../support/service.ts'

const service = await keep(
  startService({
    publicUrl: 'https://perdure.example.com',
    allowedHosts: ['flows.example.org', '*.example.net'],
  }),
)

const ask = (host: string, path = '/api/openapi.json') => service.app.request(path, { headers: { host } })

test('the service is served under its own names, loopback names and every address', async () => {
  const own = [
    ...['perdure.example.com', 'PERDURE.example.com:443', 'perdure.example.com.', 'flows.example.org:3000'],
    ...['a.example.net', 'b.a.example.net', 'localhost:3000', 'app.localhost', '127.0.0.1:3000', '10.1.2.3'],
    ...['203.0.113.9:80', '[::1]:3000', '[2001:db8::1]'],
  ]
  for (const host of own) expect([host, (await ask(host)).status]).toEqual([host, 200])
})

test('a request for another name is 421, whatever it asks for, and says what to set', async () => {
  const others = [
    ...['evil.example', 'perdure.example.com.evil.example', 'example.net', 'xexample.net', 'notlocalhost'],
    ...['127.0.0.1.evil.example', 'a b', '[::1', ''],
  ]
  for (const host of others) {
    const response = await ask(host)
    expect([host, response.status]).toEqual([host, 421])
    const { error, message } = (await response.json()) as { error: string; message: string }
    expect(error).toBe('Misdirected Request')
    expect(message).toContain('set it in PUBLIC_URL or ALLOWED_HOSTS')
    expect(message.length).toBeLessThan(300)
  }
  for (const path of ['/', '/console/main.js', '/api/docs', '/api/nothing', '/hooks/x/y', '/resume/x']) {
    expect([path, (await ask('evil.example', path)).status]).toEqual([path, 421])
  }
})

test('probes and metrics are served under any name', async () => {
  for (const path of ['/healthz', '/readyz', '/metrics'])
    expect([path, (await ask('10-0-0-1.pod.cluster', path)).status]).not.toEqual([path, 421])
})
