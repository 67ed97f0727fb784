import { describe, expect, test } from 'vitest'
import { expectAccessible, missing, useBrowser } from '../../support/browser.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { shareRunning } from '../../support/running.ts'

const running = await keep(shareRunning())
const base = await running.listen()

const FORM = {
  properties: {
    name: {
      type: 'string',
      title: 'Your name',
      description: 'As in your passport.',
      placeholder: 'Ada Byron',
    },
    mail: { type: 'string', title: 'E-mail', format: 'email' },
    days: { type: 'integer', title: 'How many days', minimum: 1 },
    from: { type: 'string', title: 'From', format: 'date' },
    size: { title: 'Room', enum: ['small', 'large'], show: 'radio' },
    with: { type: 'array', title: 'With', enum: ['breakfast', 'sea view'], show: 'checkboxes' },
    kind: { title: 'Kind', enum: ['a', 'b'] },
    wish: { type: 'string', title: 'Anything else', format: 'multiline' },
    key: { type: 'string', title: 'Booking key', format: 'password' },
    agrees: { type: 'boolean', title: 'I have read the terms', enum: [true] },
    hint: { show: 'note', title: 'Please note', description: 'We answer\nwithin a day.' },
  },
  required: ['name', 'mail', 'size', 'with', 'agrees'],
}

describe.skipIf(missing)('in a browser', () => {
  const browser = useBrowser(() => base)

  test('a form is filled in on a phone, in light and dark, and leads on to the next pages by itself', async () => {
    const { page } = browser
    const next = { form: { properties: { food: { title: 'Food', enum: ['a', 'b'], show: 'radio' } } } }
    const workflowId = await running.create({
      nodes: [
        {
          id: 'ask',
          type: 'FORM_TRIGGER',
          config: { path: 'book', title: 'Book a room', description: 'It takes two minutes.', form: FORM },
        },
        { id: 'more', type: 'FORM', config: { title: 'One more question', ...next } },
        {
          id: 'end',
          type: 'FORM',
          config: { completion: { title: 'See you soon', text: 'Bring a towel.' } },
        },
      ],
      edges: edges('ask -> more', 'more -> end'),
    })
    await running.ask('PUT', `/api/workflows/${workflowId}`, { active: true })
    await page.setViewportSize({ width: 390, height: 844 })
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme })
      await page.goto(`${base}/forms/${workflowId}/book`)
      await shoot(`form-${colorScheme}`)
      await expectAccessible(page)
      await page.getByLabel('E-mail').fill('no address')
      await page.getByLabel('How many days').fill('many')
      await page.getByRole('button', { name: 'Send' }).click()
      await page.getByRole('heading', { name: 'It was not sent yet' }).waitFor()
      expect(await page.title()).toBe('Problem: Book a room')
      expect(await page.locator(':focus').getAttribute('class')).toBe('faults')
      expect(await page.getByLabel('How many days').inputValue()).toBe('many')
      await expectAccessible(page)
      await shoot(`faults-${colorScheme}`)
      const wide = await page.locator('html').evaluate((html) => html.scrollWidth)
      expect(wide).toBeLessThanOrEqual(390)
      await page.getByRole('link', { name: 'Your name: is required' }).click()
    }
    await page.getByLabel('Your name').fill('Ada')
    await page.getByLabel('E-mail').fill('ada@example.com')
    await page.getByLabel('How many days').fill('3')
    await page.getByLabel('large').check()
    await page.getByLabel('sea view').check()
    await page.getByLabel('I have read the terms').check()
    // A double click.
    await page.getByRole('button', { name: 'Send' }).dblclick()
    await page.getByRole('heading', { name: 'One more question' }).waitFor()
    await expectAccessible(page)
    await page.getByLabel('b', { exact: true }).check()
    await page.getByRole('button', { name: 'Send' }).click()
    await page.getByRole('heading', { name: 'See you soon' }).waitFor()
    await expectAccessible(page)
    await shoot('end')
    const list = await running.ask<{ content: object[] }>(
      'GET',
      `/api/executions?teamId=${running.teamId}&workflowId=${workflowId}`,
    )
    expect(list.content).toHaveLength(1)
  })

  test('a password is asked for first', async () => {
    const { page } = browser
    const config = { path: 'book', form: FORM, access: 'password', password: { value: 'sesame' } }
    const workflowId = await running.create({
      nodes: [{ id: 'ask', type: 'FORM_TRIGGER', config }],
      edges: [],
    })
    await running.ask('PUT', `/api/workflows/${workflowId}`, { active: true })
    await page.goto(`${base}/forms/${workflowId}/book?name=Ada`)
    await expectAccessible(page)
    await page.getByLabel('Password').fill('wrong')
    await page.getByRole('button', { name: 'Go on' }).click()
    await page.getByText('This is not the password of the form').waitFor()
    await expectAccessible(page)
    await shoot('password')
    await page.getByLabel('Password').fill('sesame')
    await page.getByRole('button', { name: 'Go on' }).click()
    await page.getByLabel('Your name').waitFor()
    expect(await page.getByLabel('Your name').inputValue()).toBe('Ada')
  })

  /** For people who look at the pages: SHOTS is a folder. */
  async function shoot(name: string): Promise<void> {
    if (process.env.SHOTS)
      await browser.page.screenshot({ path: `${process.env.SHOTS}/${name}.png`, fullPage: true })
  }
})
