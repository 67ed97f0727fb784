import { expect, test } from 'vitest'
import { useBrowser } from '../../support/browser.ts'
import { edges } from '../../support/engine/graphs.ts'
import { keep } from '../../support/keep.ts'
import { startRunning } from '../../support/running.ts'
const host = await keep(startRunning())
const origin = await host.listen()
const browser = useBrowser(() => origin)
const start = { id: 'start', type: 'MANUAL_TRIGGER', config: {} }
test('shots', async () => {
  const { page } = browser
  const shot = (name: string) => page.screenshot({ path: `/tmp/shots/${name}.png` })
  const wf = async (name: string, nodes: unknown[], es: unknown[]) => (await host.ask<{id:string}>('POST','/api/workflows',{teamId:host.teamId,name,nodes,edges:es})).id
  const ok = await wf('Daily revenue report', [start, {id:'n',type:'NO_OP'}], edges('start -> n'))
  const bad = await wf('Sync orders to the warehouse', [start, {id:'stop',type:'STOP_AND_ERROR',config:{message:'The warehouse responded with 503 Service Unavailable after 5 attempts, last one 20 s ago'}}], edges('start -> stop'))
  const wait = await wf('Pay invoices', [start, {id:'ok',type:'APPROVAL',config:{message:'Pay 1,200 EUR to ACME?', timeoutMs: 86400000}}], edges('start -> ok'))
  const ids = []
  for (const w of [ok, bad, ok, wait, wait, ok, bad, ok, ok]) ids.push(await host.execute(w))
  for (const at of [0,1,2]) await host.ended(ids[at]!)
  await page.goto(origin)
  await page.waitForTimeout(1500)
  await shot('signin-light')
  await browser.signIn()
  for (const scheme of ['light','dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme })
    for (const p of ['executions','approvals']) {
      await page.goto(`${origin}/#/${p}`); await page.waitForTimeout(1800); await shot(`${p}-${scheme}`)
    }
    await page.keyboard.press('Control+k'); await page.waitForTimeout(1200); await shot(`palette-${scheme}`); await page.keyboard.press('Escape')
    await page.getByRole('button',{name:/^Approve/}).first().click(); await page.waitForTimeout(500); await shot(`decide-${scheme}`); await page.keyboard.press('Escape')
  }
  await page.setViewportSize({ width: 390, height: 844 })
  await page.emulateMedia({ colorScheme: 'light' })
  for (const p of ['executions','approvals']) {
    await page.goto(`${origin}/#/${p}`); await page.waitForTimeout(1500); await shot(`${p}-phone`)
  }
  await page.getByRole('button',{name:'Menu'}).click(); await page.waitForTimeout(600); await shot('drawer-phone'); await page.keyboard.press('Escape')
  await page.keyboard.press('Control+k'); await page.waitForTimeout(800); await shot('palette-phone')
  expect(1).toBe(1)
})
