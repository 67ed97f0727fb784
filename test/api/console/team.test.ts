import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { makeChains } from '../../support/chains.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { PASSWORD, startService } from '../../support/service.ts'

const host = await keep(startService({ rateLimits: false }))
const origin = await host.listen()
const { tamper } = makeChains(host)

const XSS = '<img src=x onerror="alert(1)">'

describe.skipIf(missing)('the pages of a team', () => {
  const browser = useBrowser(() => origin)
  const { signIn, heading } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  const notice = (text: string | RegExp) => page.locator('.notice').getByText(text).waitFor()
  const row = (text: string | RegExp) => page.getByRole('row').filter({ hasText: text })
  const expectNarrow = async () => {
    await page.setViewportSize({ width: 390, height: 844 })
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true)
    await expectAccessible(page)
    await page.setViewportSize({ width: 1280, height: 860 })
  }

  test('a credential is made of the fields of its type, edited, tested and deleted, and its secret never shown', {
    tags: 'long',
  }, async () => {
    const name = `CRM ${randomUUID()} ${XSS}`
    const secret = `secret-${randomUUID()}`
    await signIn('#/credentials')
    await heading('Credentials')
    await page.getByRole('button', { name: 'New credential' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill(name)
    await dialog.getByLabel('Type').selectOption('HTTP_BASIC')
    expect(await dialog.getByLabel('Password').getAttribute('type')).toBe('password')
    await dialog.getByLabel('Type').selectOption('HTTP_BEARER')
    const field = dialog.getByLabel('Token').first()
    expect([await field.getAttribute('type'), await field.getAttribute('autocomplete')]).toEqual([
      'password',
      'new-password',
    ])
    await field.fill(secret)
    await dialog.getByLabel('Allowed hosts').fill('api.example.com\n\n*.example.org')
    await dialog.getByLabel('Test it once it is created').uncheck()
    await expectAccessible(page)
    await dialog.getByRole('button', { name: 'Create' }).click()
    await notice('Credential created')
    await row(name).getByText('HTTP_BEARER').waitFor()
    const id = (await row(name).getAttribute('data-key'))!
    const read = async () => (await host.call('GET', `/api/credentials/${id}`, host.admin)).body
    expect(await read()).toMatchObject({
      name,
      keys: ['token', 'allowedHosts'],
      allowedHosts: ['api.example.com', '*.example.org'],
    })
    await expectNarrow()

    await page.getByRole('button', { name: `Edit ${name}` }).click()
    expect(await dialog.getByLabel('Token').first().inputValue()).toBe('')
    await dialog.getByLabel('Name').fill('Renamed')
    await dialog.getByLabel('Remove Allowed hosts').check()
    await dialog.getByRole('button', { name: 'Save' }).click()
    // Without its hosts the secret could go anywhere, so it is asked for again.
    await dialog.getByText(/is needed again in this request, because allowedHosts/).waitFor()
    await field.fill(secret)
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

    await page.getByRole('button', { name: 'More for Renamed' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
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
    await dialog.getByLabel('Client ID').fill('client')
    await dialog.getByLabel('Client secret').fill('hidden words')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.locator('.wrong').first().waitFor()
    for (const key of ['Access token', 'Refresh token'])
      expect(await dialog.getByLabel(key).getAttribute('aria-invalid')).toBe('true')
    await dialog.getByLabel('Authorization URL').fill('https://login.example.com/authorize')
    await dialog.getByLabel('Token URL').fill('https://login.example.com/token')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await notice('Credential created')
    // It leads back here, as nothing may be asked of other origins.
    await page.route('**/connect', (route) => route.fulfill({ json: { url: `${origin}/?connected` } }))
    await page.getByRole('button', { name: 'Connect Calendar' }).click()
    await page.waitForURL(/\?connected/)
  })

  test('a credential in use says by what, and is deleted only if that is meant', {
    tags: 'long',
  }, async () => {
    const json = { name: 'Used', type: 'HTTP_BEARER', teamId: host.teamId, data: { token: 'abc' } }
    const made = await host.call('POST', '/api/credentials', host.admin, json)
    expect(made.status).toBe(201)
    const call = {
      id: 'call',
      type: 'HTTP_REQUEST',
      name: 'Ask the CRM',
      config: { url: 'https://a.example', credentialId: made.body.id },
    }
    const workflow = await host.call('POST', '/api/workflows', host.admin, {
      teamId: host.teamId,
      name: `Uses it ${randomUUID()}`,
      nodes: [{ id: 'start', type: 'MANUAL_TRIGGER', config: {} }, call],
      edges: edges('start -> call'),
    })
    expect(workflow.status).toBe(201)
    await signIn('#/credentials')
    await page.getByLabel('Type').selectOption('SMTP')
    await page.getByText('None fits these filters.').waitFor()
    await page.getByLabel('Type').selectOption('HTTP_BEARER')
    await page.getByRole('button', { name: 'More for Used' }).click()
    await page.getByRole('menuitem', { name: 'Usage' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByText('Ask the CRM').waitFor()
    await dialog.getByRole('button', { name: 'Close' }).click()
    const path = `/api/workflows/${workflow.body.id}`
    expect((await host.call('PUT', path, host.admin, { active: true })).status).toBe(200)
    await page.getByRole('button', { name: 'More for Used' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await dialog.getByText(', active').waitFor()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('Although active workflows use it').check()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await notice('Credential deleted')
  })

  test('a new token is shown once, and can be revoked', async () => {
    await signIn('#/tokens')
    await page.getByRole('button', { name: 'New token' }).click()
    await page.getByLabel('Name').fill('CI')
    await page.getByRole('button', { name: 'Create' }).click()
    const token = (await page.locator('.secret').textContent())!
    const use = async () => (await host.request(`/api/workflows?teamId=${host.teamId}`, { as: token })).status
    expect(await use()).toBe(200)
    await page.getByText('/api/telemetry/v1/traces').waitFor()
    await expectNarrow()
    await page.reload()
    await heading('SDK tokens')
    expect(await page.getByText(token).count()).toBe(0)
    await page.getByRole('button', { name: 'Revoke CI' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click()
    await page.getByText('No tokens').waitFor()
    expect(await use()).toBe(401)
  })

  test('variables are created, changed and deleted by those who may', { tags: 'long' }, async () => {
    const key = `region_${randomUUID().slice(0, 8)}`
    await signIn('#/variables')
    await page.getByRole('button', { name: 'New variable' }).first().click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Key').fill(key)
    const write = async (json: string) => {
      await dialog.getByRole('textbox', { name: 'Value' }).click()
      // The keys go through the editor, as those of people do.
      await page.keyboard.press('Control+a')
      await page.keyboard.press('Delete')
      await page.keyboard.insertText(json)
    }
    await write('"eu')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByText('must be JSON').waitFor()
    await write('["us"]')
    // The editor is not told of a new selection at once; the browser would keep the colour of what is typed over.
    await dialog.locator('.cm-matchingBracket').first().waitFor()
    await page.evaluate(() => {
      addEventListener('selectionchange', (event) => event.stopImmediatePropagation(), true)
      getSelection()!.selectAllChildren(document.querySelector('[role=dialog] .cm-content')!)
    })
    await page.keyboard.insertText('["eu"]')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await row(key).getByText('["eu"]').waitFor()
    await expectNarrow()
    const operator = await host.signUp('OPERATOR')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await signIn('#/variables', operator.email)
    await row(key).waitFor()
    expect(await page.getByRole('button', { name: /New variable|Edit|Delete/ }).count()).toBe(0)
    expect(await page.getByRole('link', { name: /Credentials|Tokens|Members|Audit/ }).count()).toBe(0)
    await page.getByRole('button', { name: 'Sign out' }).click()
    await signIn('#/variables')
    await page.getByRole('button', { name: `Delete ${key}` }).click()
    await dialog.getByRole('button', { name: 'Delete' }).click()
    await row(key).waitFor({ state: 'detached' })
  })

  test('members are added, get other roles and are removed; the last ADMIN stays', async () => {
    const ada = await host.signUp()
    await host.store.db.deleteFrom('members').where('userId', '=', ada.id).execute()
    await signIn('#/members')
    await page.getByRole('button', { name: 'Add member' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('E-mail').fill('nobody@example.com')
    await dialog.getByRole('button', { name: 'Add', exact: true }).click()
    await dialog.getByRole('alert').waitFor()
    await dialog.getByLabel('E-mail').fill(ada.email)
    await dialog.getByRole('button', { name: 'Add', exact: true }).click()
    await row(ada.email).getByText('Operator').waitFor()
    await row(ada.email)
      .getByRole('button', { name: /Change role of/ })
      .click()
    await dialog.getByLabel('Role').selectOption('BUILDER')
    await dialog.getByRole('button', { name: 'Change role' }).click()
    await row(ada.email).getByText('Builder').waitFor()
    await expectNarrow()
    await row(ada.email)
      .getByRole('button', { name: /Remove/ })
      .click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await row(ada.email).waitFor({ state: 'detached' })
    await row('You').getByRole('button', { name: /Leave/ }).click()
    await dialog.getByRole('button', { name: 'Leave' }).click()
    await dialog.getByRole('alert').waitFor()
  })

  test('the team, the account and the instance have their settings', { tags: 'long' }, async () => {
    const user = await host.signUp('OPERATOR')
    await signIn('#/settings', user.email)
    await page.getByRole('meter', { name: 'Requests in this minute' }).waitFor()
    expect(await page.getByRole('button', { name: 'Save team' }).count()).toBe(0)
    expect(await page.getByRole('tab', { name: 'Instance' }).count()).toBe(0)
    await page.getByRole('tab', { name: 'Your account' }).click()
    await expectAccessible(page)
    await page.getByLabel('Old password').fill('wrong')
    await page.getByLabel('New password').fill('correct horse battery staple')
    await page.getByRole('button', { name: 'Change password' }).click()
    await page.locator('.wrong, .refusal').first().waitFor()
    await page.getByLabel('Old password').fill(PASSWORD)
    await page.getByRole('button', { name: 'Change password' }).click()
    await notice('Password changed')
    await page.getByRole('button', { name: 'Sign out' }).click()
    await signIn('#/settings?tab=instance')
    await page.getByLabel('Keys').fill('customerRef')
    await page.getByRole('button', { name: 'Save masking' }).click()
    await notice('Masking saved')
    expect((await host.call('GET', '/api/admin/masking', host.admin)).body.keys).toEqual(['customerRef'])
    await expectNarrow()
    await page.getByRole('tab', { name: 'Team' }).click()
    await page.getByLabel('Description').fill('Experiments')
    await page.getByRole('button', { name: 'Save team' }).click()
    await notice('Team saved')
    await expectNarrow()
  })

  test('the schedules of the team are listed with their next times', { tags: 'long' }, async () => {
    const name = `Nightly ${randomUUID()}`
    const nodes = [
      { id: 'night', type: 'SCHEDULE_TRIGGER', config: { cron: '0 3 * * *', timezone: 'Europe/Berlin' } },
    ]
    await host.call('POST', '/api/workflows', host.admin, { teamId: host.teamId, name, nodes, edges: [] })
    await signIn('#/schedules')
    const table = page.getByRole('table', { name: 'Schedules' })
    await table.getByText(name).waitFor()
    await table.getByText('Europe/Berlin').waitFor()
    await expectNarrow()
  })

  test('the audit is searched and verified, and the verdict says where somebody has broken its chain', {
    tags: 'long',
  }, async () => {
    for (const description of ['First', 'Second']) {
      const path = `/api/teams/${host.teamId}`
      expect((await host.call('PUT', path, host.admin, { description })).status).toBe(200)
    }
    await signIn('#/audit')
    await page.getByRole('button', { name: 'Verify the chain' }).click()
    await page.getByRole('heading', { name: 'The chain is intact' }).waitFor()
    await expectNarrow()
    await page.getByLabel('Action').selectOption('TEAM_UPDATED')
    const entries = page.getByRole('table', { name: 'Audit entries' })
    const count = async () => [
      await entries.getByText('Team updated').count(),
      await page.getByRole('button', { name: /Details of entry/ }).count(),
    ]
    await expect.poll(async () => (await count())[0] === (await count())[1]).toBe(true)
    expect((await count())[0]).toBeGreaterThan(1)
    await page
      .getByRole('button', { name: /Details of entry/ })
      .first()
      .click()
    await page.getByRole('dialog').getByText('Hash before').waitFor()
    await expectAccessible(page)
    await page.keyboard.press('Escape')

    await page.getByRole('tab', { name: 'Reports' }).click()
    await page.getByRole('button', { name: 'New report' }).click()
    await page.getByLabel('Name').fill('Third quarter')
    await page.getByRole('button', { name: 'Create' }).click()
    await row('Third quarter').getByText('Waits').waitFor()
    await expectAccessible(page)
    await page.getByRole('tab', { name: 'SIEM' }).click()
    await page.getByRole('button', { name: 'New forwarder' }).click()
    await page.getByLabel('Name').fill('Our SIEM')
    await page.getByLabel('URL').fill('https://siem.example.com/ingest')
    await page.getByRole('button', { name: 'Create' }).click()
    await row('Our SIEM').getByText('siem.example.com').waitFor()
    await expectAccessible(page)
    await page.getByRole('tab', { name: 'Retention' }).click()
    await page.getByLabel('Entries are kept for').fill('400')
    await page.getByRole('button', { name: 'Save', exact: true }).click()
    await notice('Retention saved')
    await expectAccessible(page)

    const at = `team_id = '${host.teamId}' and seq = 2`
    await tamper(`update audit_entries set action = 'TEAM_FORGED' where ${at}`)
    await page.getByRole('button', { name: 'Verify the chain' }).click()
    await page.getByRole('heading', { name: 'The chain is broken at entry 2' }).waitFor()
    await page.getByText('no longer what was signed').waitFor()
    await expectNarrow()
  })
})
