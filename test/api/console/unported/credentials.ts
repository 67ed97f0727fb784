import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { missing, useBrowser } from '../../support/browser.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { nodeOf, startRunning } from '../../support/running.ts'

const host = await keep(startRunning())
const origin = await host.listen()

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const XSS = '<img src=x onerror="alert(1)">'

describe.skipIf(missing)('in a browser', () => {
  const browser = useBrowser(() => origin)
  const { signIn, heading } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  const rows = () => page.locator('tr[data-credential]')
  const notice = (text: string | RegExp) => page.locator('.notice').getByText(text).waitFor()

  test('a credential is made of the fields of its type, edited, tested and deleted, and its secret never shown', async () => {
    const name = `CRM ${randomUUID()} ${XSS}`
    const secret = `secret-${randomUUID()}`
    await signIn('#/credentials')
    await heading('Credentials')
    await page.getByRole('button', { name: 'New credential' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill(name)
    await dialog.getByLabel('Type').selectOption('HTTP_BASIC')
    expect(await dialog.getByLabel('password').getAttribute('type')).toBe('password')
    await dialog.getByLabel('Type').selectOption('HTTP_BEARER')
    const field = dialog.getByLabel('token', { exact: false }).first()
    expect([await field.getAttribute('type'), await field.getAttribute('autocomplete')]).toEqual([
      'password',
      'new-password',
    ])
    await field.fill(secret)
    await dialog.getByLabel('allowedHosts').fill('api.example.com\n\n*.example.org')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await notice('Credential created')
    const row = rows().filter({ hasText: name })
    await row.getByText('HTTP_BEARER').waitFor()
    const id = (await row.getAttribute('data-credential'))!
    const read = async () =>
      (await host.request(`/api/credentials/${id}`, { as: host.admin })).json() as Promise<
        Record<string, unknown>
      >
    expect(await read()).toMatchObject({
      name,
      keys: ['token', 'allowedHosts'],
      allowedHosts: ['api.example.com', '*.example.org'],
    })

    await row.getByRole('button', { name: `Edit ${name}` }).click()
    expect(await dialog.getByLabel('token', { exact: false }).first().inputValue()).toBe('')
    await dialog.getByLabel('Name').fill('Renamed')
    await dialog.getByLabel('Remove allowedHosts').check()
    await dialog.getByRole('button', { name: 'Save' }).click()
    await notice('Credential saved')
    expect(await read()).toMatchObject({ name: 'Renamed', keys: ['token'], allowedHosts: null })
    expect(await page.content()).not.toContain(secret)

    // What the other side says is for the tests of the API.
    await page.route(`**/api/credentials/${id}/test?*`, (route) =>
      route.fulfill({
        json: { status: 'FAILED', message: 'it was refused', testedAt: new Date().toISOString() },
      }),
    )
    await page.getByRole('button', { name: 'Test Renamed' }).click()
    await notice('Renamed: it was refused')

    await page.getByRole('button', { name: 'Delete Renamed' }).click()
    await dialog.getByText('No workflow uses it.').waitFor()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await notice('Credential deleted')
    expect((await host.request(`/api/credentials/${id}`, { as: host.admin })).status).toBe(404)
  })

  test('all that is wrong with the data is named, and an OAuth 2 credential leads to its server', async () => {
    await signIn('#/credentials')
    await page.getByRole('button', { name: 'New credential' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('Calendar')
    await dialog.getByLabel('Type').selectOption('OAUTH2')
    await dialog.getByLabel('clientId').fill('client')
    await dialog.getByLabel('clientSecret').fill('hidden words')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.locator('.problems li').first().waitFor()
    expect(await dialog.locator('.problems').textContent()).toMatch(/accessToken.*refreshToken/s)
    await dialog.getByLabel('authorizationUrl').fill('https://login.example.com/authorize')
    await dialog.getByLabel('tokenUrl').fill('https://login.example.com/token')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await notice('Credential created')
    const row = rows().filter({ hasText: 'Calendar' })
    // It leads back here, as nothing may be asked of other origins.
    await page.route('**/connect', (route) => route.fulfill({ json: { url: `${origin}/?connected` } }))
    await row.getByRole('button', { name: 'Connect Calendar' }).click()
    await page.waitForURL(/\?connected/)
  })

  test('a credential in use says by what, and is deleted only if that is meant', async () => {
    const made = await host.request('/api/credentials', {
      method: 'POST',
      as: host.admin,
      json: { name: 'Used', type: 'HTTP_BEARER', teamId: host.teamId, data: { token: 'abc' } },
    })
    expect(made.status).toBe(201)
    const { id } = (await made.json()) as { id: string }
    const call = {
      id: 'call',
      type: 'HTTP_REQUEST',
      name: 'Ask the CRM',
      config: { url: 'https://a.example', credentialId: id },
    }
    const workflowId = await host.create({
      nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }, call],
      edges: edges('start -> call'),
    })
    await signIn('#/credentials')
    await page.getByLabel('Type').selectOption('SMTP')
    await page.getByText('No credentials').waitFor()
    await page.getByLabel('Type').selectOption('HTTP_BEARER')
    await page.getByRole('button', { name: 'Usage Used' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Ask the CRM').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).click()
    const changed = await host.request(`/api/workflows/${workflowId}`, {
      method: 'PUT',
      as: host.admin,
      json: { active: true },
    })
    expect(changed.status).toBe(200)
    await page.getByRole('button', { name: 'Delete Used' }).click()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('Although active workflows use it').check()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await notice('Credential deleted')
  })

  test('files in a record are named, downloaded, and shown if they are images or texts', async () => {
    const name = `notes ${XSS}.txt`.replace('/', '')
    const nodes = [
      { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
      { id: 'image', type: 'CONVERT_TO_FILE', config: { format: 'base64', data: PIXEL, name: 'dot.png' } },
      { id: 'text', type: 'CONVERT_TO_FILE', config: { format: 'text', data: `words ${XSS}`, name } },
      {
        id: 'both',
        type: 'SET',
        config: { values: { image: '{{ $nodes.image }}', list: ['{{ $nodes.text }}'] } },
      },
    ]
    const run = await host.run({ nodes, edges: edges('start -> image', 'image -> text', 'text -> both') })
    expect(run.status, run.errorMessage ?? '').toBe('SUCCESS')
    const { file } = nodeOf(run, 'image').outputData as { file: { id: string } }
    expect(file).toMatchObject({ mimeType: 'image/png' })
    await signIn(`#/executions/${run.id}`)
    await page.locator('tr[data-node=both] button').click()
    // Below the records are those of the run's own output.
    expect(await page.getByRole('region', { name: 'Files' }).count()).toBe(2)
    const files = page.locator('tr.details').getByRole('region', { name: 'Files' })
    await files.getByRole('link', { name: 'dot.png' }).waitFor()
    const image = files.getByAltText('dot.png')
    await expect.poll(() => image.evaluate((one) => Reflect.get(one, 'naturalWidth'))).toBe(1)
    await files.getByText('Show the text').click()
    await files.getByLabel(`Text of ${name}`).getByText(`words ${XSS}`).waitFor()
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      files.getByRole('link', { name: 'dot.png' }).click(),
    ])
    expect(download.suggestedFilename()).toBe('dot.png')
  })
})
