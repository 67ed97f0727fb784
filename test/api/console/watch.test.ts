import { randomUUID } from 'node:crypto'
import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const origin = await host.listen()
const PHONE = { width: 390, height: 844 }

/** How far the page is wider than the window, in pixels. */
const overflow = (page: Page) =>
  page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth)

describe.skipIf(missing)('what is watched', () => {
  const browser = useBrowser(() => origin, host.user.email)
  const { signIn, heading } = browser
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  test('what calls to models took is shown by day, model and workflow, and how executions ended', {
    tags: 'long',
  }, async () => {
    const demo = { teamId: host.teamId, name: `Demo ${randomUUID()}`, type: 'DEMO', data: {} }
    const { id: credentialId } = await host.ask<{ id: string }>('POST', '/api/credentials', demo)
    const name = `Asks ${randomUUID()}`
    const { id: workflowId } = await host.ask<{ id: string }>('POST', '/api/workflows', {
      teamId: host.teamId,
      name,
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        { id: 'ask', type: 'LLM', config: { credentialId, model: 'demo', prompt: 'Say hello' } },
      ],
      edges: edges('start -> ask'),
    })
    await host.ended(await host.execute(workflowId))
    await signIn('#/monitoring')
    await heading('Monitoring')
    await page.getByRole('table', { name: 'Usage by workflow' }).getByText(name).waitFor()
    await page.getByRole('table', { name: 'Usage by model' }).getByText('demo').first().waitFor()
    await page.getByRole('img', { name: /^Tokens by day/ }).waitFor()
    await expectAccessible(page)
    await page.getByRole('tab', { name: 'Executions' }).click()
    await page.getByRole('img', { name: /^Executions by hour/ }).waitFor()
    await page.getByLabel('Period').selectOption('1')
    await page.waitForURL(/days=1/)
    await expectAccessible(page)
    await page.setViewportSize(PHONE)
    expect(await overflow(page)).toBe(0)
  })

  test('an ADMIN says what raises alerts; what is wrong is said at its field', { tags: 'long' }, async () => {
    await signIn('#/monitoring?tab=settings')
    await page.getByLabel(/^Anomalies/).check()
    await page.getByLabel('Error rate').fill('7')
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('must be at most 1').waitFor()
    await page.getByLabel('Error rate').fill('0.2')
    await page.getByLabel(/by e-mail$/).check()
    await page.getByRole('button', { name: 'Save' }).click()
    await page.getByText('Saved', { exact: true }).waitFor()
    const path = `/api/monitoring/teams/${host.teamId}/config`
    expect(await host.ask('GET', path)).toMatchObject({
      anomalyDetectionEnabled: true,
      alertThresholds: { errorRateThreshold: 0.2, tokenUsageSpike: 3 },
      notificationChannels: ['email'],
    })
    await page.getByRole('tab', { name: 'Alerts' }).click()
    await page.getByText('No alerts').waitFor()
    await expectAccessible(page)
  })

  test('a text is checked, what was found is marked in it, and nothing of it becomes markup', {
    tags: 'long',
  }, async () => {
    await signIn('#/guardrails')
    await heading('Guardrails')
    const text = 'Write to ada@example.com <img src=x onerror=alert(1)>'
    await page.getByLabel('Text', { exact: true }).fill(text)
    await page.getByRole('button', { name: 'Check', exact: true }).click()
    await page.getByText('1 violation', { exact: true }).waitFor()
    expect(await page.locator('mark').allTextContents()).toEqual(['ada@example.com'])
    await page.getByText('Write to [EMAIL] <img src=x onerror=alert(1)>').waitFor()
    await expectAccessible(page)
    await page.setViewportSize(PHONE)
    expect(await overflow(page)).toBe(0)
  })

  test('a rule is tried out before it is saved, then applied, changed and deleted', async () => {
    await signIn('#/guardrails?tab=rules')
    await page.getByRole('button', { name: 'New rule' }).click()
    await page.getByLabel('Name').fill('No zebras')
    await page.getByLabel('Words', { exact: true }).fill('zebra\n')
    await page.getByLabel('Sample').fill('A Zebra, and a zebra')
    await page.getByRole('button', { name: 'Try it out' }).click()
    await page.getByText('2 matches').waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Save the rule' }).click()
    await page.getByRole('switch', { name: 'Apply No zebras' }).waitFor()
    await page.getByRole('switch', { name: 'Apply No zebras' }).click()
    await page.getByText('No zebras is not applied any more').waitFor()
    const rules = () => host.ask<{ content: object[] }>('GET', `/api/guardrails/rules?teamId=${host.teamId}`)
    expect((await rules()).content).toMatchObject([{ enabled: false, config: { keywords: ['zebra'] } }])
    await page.getByRole('button', { name: 'More about No zebras' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete the rule' }).click()
    await page.getByText('No rules').waitFor()
    expect((await rules()).content).toEqual([])

    await page.getByRole('tab', { name: 'Exemplars' }).click()
    await page.getByRole('button', { name: 'New exemplar' }).click()
    await page.getByLabel('Name').fill('Free rooms')
    await page.getByRole('dialog').getByLabel('Text').fill('日本')
    await page.getByRole('button', { name: 'Save the exemplar' }).click()
    await page.getByText('must have words in Latin letters: the model reads no others').waitFor()
    await expectAccessible(page)
    await page.keyboard.press('Escape')
    await page.getByText('No exemplars').waitFor()
  })

  test('a model for guardrails is set up within a cap; what is missing is said at its field', {
    tags: 'long',
  }, async () => {
    const demo = { teamId: host.teamId, name: `Demo ${randomUUID()}`, type: 'DEMO', data: {} }
    await host.ask('POST', '/api/credentials', demo)
    await signIn('#/guardrails?tab=model')
    await page.getByText('No model helps').waitFor()
    await page.getByLabel('Credential').selectOption(demo.name)
    await page.getByRole('textbox', { name: 'Model', exact: true }).fill('demo')
    await page.getByRole('button', { name: 'Save the model' }).click()
    await page.getByText('is needed by credentialId').waitFor()
    await expectAccessible(page)
    await page.getByLabel('Most US dollars in a month').fill('5')
    await page.getByRole('button', { name: 'Save the model' }).click()
    await page.getByText('$0.00 of $5.00').waitFor()
    await page.getByRole('button', { name: 'Ask the model' }).waitFor()
    await expectAccessible(page)
    const path = `/api/guardrails/settings?teamId=${host.teamId}`
    expect(await host.ask('GET', path)).toMatchObject({ model: 'demo', monthlyCostCap: 5, checks: [] })
    await page.setViewportSize(PHONE)
    expect(await overflow(page)).toBe(0)
  })

  test('prices are added, changed and deleted; a second one for the same model is refused', {
    tags: 'long',
  }, async () => {
    const path = `/api/monitoring/teams/${host.teamId}/prices`
    await signIn('#/monitoring?tab=prices')
    const add = async (output: string) => {
      await page.getByRole('button', { name: 'New price' }).click()
      await page.getByLabel('Model').fill('llama3*')
      await page.getByLabel('Input, $ per million tokens').fill('0.35')
      await page.getByLabel('Output, $ per million tokens').fill(output)
      await page.getByRole('button', { name: 'Save the price' }).click()
    }
    await add('0.4')
    await page.getByRole('table', { name: 'Prices' }).getByText('$0.40').waitFor()
    await add('1')
    await page.getByText('is the same model, provider and time as prices[0]').waitFor()
    await expectAccessible(page)
    await page.keyboard.press('Escape')
    await page.getByRole('button', { name: 'More about llama3*' }).click()
    await page.getByRole('menuitem', { name: 'Edit' }).click()
    await page.getByLabel('Output, $ per million tokens').fill('0.5')
    await page.getByRole('button', { name: 'Save the price' }).click()
    await page.getByRole('table', { name: 'Prices' }).getByText('$0.50').waitFor()
    expect(await host.ask('GET', path)).toMatchObject({
      prices: [{ model: 'llama3*', provider: null, inputPerMillion: 0.35, outputPerMillion: 0.5 }],
    })
    await page.setViewportSize(PHONE)
    expect(await overflow(page)).toBe(0)
    await page.getByRole('button', { name: 'More about llama3*' }).click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete the price' }).click()
    await page.getByText('No prices of its own').waitFor()
    expect(await host.ask('GET', path)).toEqual({ prices: [] })
    for (const [tab, empty] of [
      ['Shifts', 'Nothing sampled yet'],
      ['Agents elsewhere', 'No telemetry'],
    ] as const) {
      await page.getByRole('tab', { name: tab }).click()
      await page.getByText(empty).waitFor()
      await expectAccessible(page)
    }
  })
})
