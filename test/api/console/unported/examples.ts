// For whoever ports the examples to the page of a new workflow: the test of api/console/old/examples.js, in
// assets.test.ts before.
test('every example can be saved, and the data that it speaks of is JSON', async () => {
  const { EXAMPLES } = await import(new URL('../../../api/console/examples.js', import.meta.url).href)
  const { cookie } = await host.signUp('BUILDER')
  const { teamId } = host
  const demo = { teamId, name: 'Demo model', type: 'DEMO', data: {} }
  const { body } = await host.call('POST', '/api/credentials', cookie, demo)
  for (const { name, make } of EXAMPLES) {
    const draft = make(body.id)
    const made = await host.call('POST', '/api/workflows', cookie, { ...draft, teamId })
    expect([name, made.status, made.body.warnings]).toEqual([name, 201, undefined])
    const data = /\{.*\}/.exec(draft.description)?.[0]
    if (data !== undefined) expect([name, JSON.parse(data)]).toEqual([name, expect.any(Object)])
  }
})
