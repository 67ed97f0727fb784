import type { Page } from 'playwright-core'
import { beforeEach, describe, expect, test } from 'vitest'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { startVendor } from '../../support/connectors/vendor.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const host = await keep(shareRunning())
const origin = await host.listen()

describe.skipIf(missing)('connectors', () => {
  const browser = useBrowser(() => origin, host.user.email)
  let page: Page
  beforeEach(() => {
    page = browser.page
  })

  test('one is made of a document, and its action is filled in and executed without JSON', async () => {
    const service = await startVendor(host, () => ({ json: { id: 7, name: 'Rex' } }))
    const document = {
      openapi: '3.1.0',
      info: { title: 'Pet shop', version: '1' },
      servers: [{ url: service.url }],
      paths: {
        '/pets': {
          post: {
            ...{ operationId: 'addPet', summary: 'Add a pet' },
            requestBody: {
              required: true,
              content: {
                'application/json': {
                  schema: {
                    type: 'object',
                    required: ['name'],
                    properties: {
                      name: { type: 'string', title: 'Name of the pet' },
                      age: { type: 'integer' },
                    },
                  },
                },
              },
            },
            responses: { 201: { description: 'The pet' } },
          },
        },
      },
    }
    await browser.signIn('#/connectors')
    await page.getByText('Airtable', { exact: true }).waitFor()
    await expectAccessible(page)
    await page.getByRole('button', { name: 'New connector' }).click()
    const dialog = page.getByRole('dialog')
    await dialog.getByLabel('Name').fill('pet-shop')
    await dialog.getByLabel('OpenAPI document').fill('nothing')
    await dialog.getByRole('button', { name: 'Create' }).click()
    await dialog.getByText('is not an object').waitFor()
    await expectAccessible(page)
    await dialog.getByLabel('OpenAPI document').fill(JSON.stringify(document))
    await dialog.getByRole('button', { name: 'Create' }).click()
    await page.getByText('Pet shop', { exact: true }).waitFor()

    const id = await host.create({
      nodes: [
        { id: 'start', type: 'MANUAL_TRIGGER', config: {} },
        {
          id: 'act',
          type: 'CONNECTOR',
          config: { connector: 'airtable', action: 'listRecords', input: { base: 'a', table: 'b' } },
        },
      ],
      edges: [{ source: 'start', target: 'act' }],
    })
    await page.goto(`${origin}/#/workflows/${id}/edit`)
    await page.getByTestId('rf__node-act').dblclick()
    const panel = page.getByRole('complementary', { name: 'Settings of Connector 1' })
    await panel.getByLabel('Service').selectOption({ label: 'Pet shop' })
    await panel.getByRole('combobox', { name: /^Action/ }).selectOption({ label: 'Add a pet' })
    await panel.getByText('It is sent at most once.').waitFor()
    await panel.getByLabel('Name of the pet').click()
    await page.keyboard.type('Rex')
    await expectAccessible(page)
    await page.getByRole('button', { name: /^Save/ }).first().click()
    await page.getByText('Saved as a draft').first().waitFor()
    const draft = await host.ask<{ nodes: { config: { input: object } }[] }>(
      'GET',
      `/api/workflows/${id}?version=draft`,
    )
    expect(draft.nodes[1]!.config.input).toEqual({ name: 'Rex' })
    expect(draft.nodes[1]!.config).toMatchObject({ connector: 'pet-shop', action: 'addPet' })
    await service.stop()
  })
})
