import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const origin = await host.listen()

describe.skipIf(missing)('incident playbooks', () => {
  const browser = useBrowser(() => origin, host.user.email)
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  test('a playbook is made of steps, changed, turned off, and deleted', async () => {
    const team = `/api/monitoring/teams/${host.teamId}`
    const { id: channelId } = await host.ask<{ id: string }>('POST', `${team}/channels`, {
      ...{ name: 'On call', type: 'EMAIL', config: { recipients: ['ada@example.com'] } },
    })
    await browser.signIn('#/monitoring?tab=playbooks')
    await page.getByText('No playbooks').waitFor()
    await page.getByRole('button', { name: 'New playbook' }).click()
    await page.getByLabel('Name').fill('Stop what fails')
    await page.getByLabel('Alerts: Sentiment').uncheck()
    await page.getByLabel('Least severity').selectOption('HIGH')
    await page.getByLabel('Channel of step 1').selectOption('On call')
    await page.getByRole('button', { name: 'Add a step' }).click()
    await page.getByLabel('Step 2', { exact: true }).selectOption('DEACTIVATE_WORKFLOW')
    await expectAccessible(page)
    await page.getByRole('button', { name: 'Save the playbook' }).click()
    await page.getByText('Notify, then Deactivate workflow').waitFor()
    expect(await host.ask('GET', `${team}/playbooks`)).toMatchObject([
      {
        on: { alertTypes: ['ANOMALY', 'DRIFT'], minSeverity: 'HIGH', evaluations: false },
        steps: [{ type: 'NOTIFY', channelId }, { type: 'DEACTIVATE_WORKFLOW' }],
      },
    ])
    await page.getByRole('button', { name: 'Runs of Stop what fails' }).click()
    await page.getByText('None in the last 30 days').waitFor()
    await page.getByRole('button', { name: 'Close' }).click()
    const more = page.getByRole('button', { name: 'More about Stop what fails' })
    await more.click()
    await page.getByRole('menuitem', { name: 'Edit' }).click()
    await page.getByRole('button', { name: 'Remove step 1' }).click()
    await page.getByRole('button', { name: 'Save the playbook' }).click()
    await page.getByRole('cell', { name: 'Deactivate workflow', exact: true }).waitFor()
    await page.setViewportSize({ width: 390, height: 844 })
    await expectAccessible(page)
    const over = await page.evaluate(
      () => document.documentElement.scrollWidth - document.documentElement.clientWidth,
    )
    expect(over).toBe(0)
    await page.getByRole('switch', { name: 'Run Stop what fails' }).click()
    await page.getByText('Stop what fails does not run any more').waitFor()
    expect(await host.ask('GET', `${team}/playbooks`)).toMatchObject([
      { enabled: false, steps: [{ type: 'DEACTIVATE_WORKFLOW' }] },
    ])
    await more.click()
    await page.getByRole('menuitem', { name: 'Delete' }).click()
    await page.getByRole('button', { name: 'Delete the playbook' }).click()
    await page.getByText('No playbooks').waitFor()
    expect(await host.ask('GET', `${team}/playbooks`)).toEqual([])
  })
})
