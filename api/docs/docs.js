// Filters the list of operations by what is typed.
const filter = document.getElementById('filter')
filter.addEventListener('input', () => {
  const words = filter.value.toLowerCase().split(/\s+/)
  for (const item of document.querySelectorAll('nav li')) {
    item.hidden = !words.every((word) => item.dataset.text.includes(word))
  }
  for (const section of document.querySelectorAll('nav section')) {
    section.hidden = !section.querySelector('li:not([hidden])')
  }
})
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target === filter) return
  event.preventDefault()
  filter.focus()
})
