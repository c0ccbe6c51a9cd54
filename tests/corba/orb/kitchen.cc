// A client and a server of kitchen.idl in one program, so that omniORB's stubs are compiled once.
//   kitchen serve            prints its IOR, then serves until its input ends
//   kitchen call IOR         calls every operation, prints what came back
//   kitchen note IOR TEXT    calls one oneway operation
//   kitchen manage MANAGER GROUP MEMBER    makes an object a member of a group, asks for it, and takes it away
#include <iostream>
#include <string>
#include "groups.hh"  // of to_idl(ObjectGroupManager)
#include "kitchen.hh"

using namespace demo;

static Dish dish(const char* name, Course course, double price, std::initializer_list<CORBA::Short> scores, bool vegan) {
  Dish made;
  made.name = CORBA::string_dup(name);
  made.served = course;
  made.price = price;
  made.marks.length(scores.size());
  CORBA::ULong at = 0;
  for (CORBA::Short score : scores) made.marks[at++] = score;
  made.vegan = vegan;
  return made;
}

static const Dish& offered(int number) {
  static const Dish all[] = {dish("soup", STARTER, 4.5, {3, -4, 5}, true), dish("stew", MAIN, 11.25, {}, false),
                             dish("cake", DESSERT, 3.75, {7}, true)};
  return all[number];
}

class Serving : public POA_demo::Kitchen {
  Strings said;

 public:
  CORBA::Double area() { return 12.5; }
  char* title() { return CORBA::string_dup("K\xfc" "che"); }
  char* greet(const char* name) { return CORBA::string_dup(("Hello, " + std::string(name) + "!").c_str()); }
  CORBA::WChar* widen(const CORBA::WChar* text) {
    std::wstring twice(text);
    twice += text;
    return CORBA::wstring_dup(twice.c_str());
  }
  Numbers echo(const Numbers& value) { return value; }
  CORBA::LongLong total(const Longs& values) {
    CORBA::LongLong sum = 0;
    for (CORBA::ULong at = 0; at < values.length(); at++) sum += values[at];
    return sum;
  }
  Octets* reverse(const Octets& data) {
    Octets* made = new Octets;
    made->length(data.length());
    for (CORBA::ULong at = 0; at < data.length(); at++) (*made)[at] = data[data.length() - 1 - at];
    return made;
  }
  Dishes* menu(Course which) {
    Dishes* found = new Dishes;
    for (int number = 0; number < 3; number++)
      if (offered(number).served == which) {
        found->length(found->length() + 1);
        (*found)[found->length() - 1] = offered(number);
      }
    return found;
  }
  Dish* order(const char* name, CORBA::Long count) {
    for (int number = 0; number < 3; number++)
      if (std::string(offered(number).name) == name) {
        if (count > 3) throw SoldOut(name, 3);
        return new Dish(offered(number));
      }
    throw Closed();
  }
  CORBA::Long divide(CORBA::Long a, CORBA::Long b, CORBA::Long& rest) {
    if (b == 0) throw CORBA::BAD_PARAM(7, CORBA::COMPLETED_NO);
    rest = a % b;
    return a / b;
  }
  CORBA::Object_ptr itself() { return _this(); }
  void note(const char* text) {
    said.length(said.length() + 1);
    said[said.length() - 1] = text;
  }
  Strings* notes() { return new Strings(said); }
};

static int serve(CORBA::ORB_ptr orb) {
  CORBA::Object_var object = orb->resolve_initial_references("RootPOA");
  PortableServer::POA_var poa = PortableServer::POA::_narrow(object);
  Serving* serving = new Serving;
  PortableServer::ObjectId_var id = poa->activate_object(serving);
  CORBA::Object_var reference = serving->_this();
  CORBA::String_var text = orb->object_to_string(reference);
  PortableServer::POAManager_var manager = poa->the_POAManager();
  manager->activate();
  std::cout << text.in() << std::endl;
  std::string line;
  while (std::getline(std::cin, line)) {}
  return 0;
}

static int call(CORBA::ORB_ptr orb, const char* text) {
  CORBA::Object_var object = orb->string_to_object(text);
  Kitchen_var kitchen = Kitchen::_narrow(object);
  if (CORBA::is_nil(kitchen)) return 3;
  Room_var room = Room::_narrow(object);
  std::cout << "area " << room->area() << "\n";
  CORBA::String_var title = room->title();
  std::cout << "title " << title.in() << "\n";
  CORBA::String_var greeting = kitchen->greet("omni");
  std::cout << "greet " << greeting.in() << "\n";
  try {
    CORBA::WString_var wide = kitchen->widen(L"\u03bb!");
    std::cout << "widen";
    for (const CORBA::WChar* at = wide.in(); *at; at++) std::cout << " " << static_cast<unsigned long>(*at);
    std::cout << "\n";
  } catch (const CORBA::SystemException&) {
    std::cout << "no wide text\n";
  }
  Numbers sent = {200, -30000, 60000, -2000000000, 4000000000U, -9000000000000000000LL, 18000000000000000000ULL,
                  1.5f, -2.25, true, 'z'};
  Numbers got = kitchen->echo(sent);
  std::cout << "echo " << int(got.a_octet) << " " << got.a_short << " " << got.a_ushort << " " << got.a_long << " "
            << got.a_ulong << " " << got.a_longlong << " " << got.a_ulonglong << " " << got.a_float << " "
            << got.a_double << " " << int(got.a_boolean) << " " << got.a_char << "\n";
  Longs values;
  values.length(1000);
  for (CORBA::ULong at = 0; at < 1000; at++) values[at] = 2000000000;
  std::cout << "total " << kitchen->total(values) << "\n";
  Octets data;
  data.length(50000);  // more than one fragment of omniORB's
  for (CORBA::ULong at = 0; at < data.length(); at++) data[at] = at % 251;
  Octets_var back = kitchen->reverse(data);
  bool reversed = back->length() == data.length();
  for (CORBA::ULong at = 0; reversed && at < data.length(); at++) reversed = back[at] == data[data.length() - 1 - at];
  std::cout << "reverse " << reversed << "\n";
  Dishes_var dishes = kitchen->menu(STARTER);
  for (CORBA::ULong at = 0; at < dishes->length(); at++) {
    const Dish& each = dishes[at];
    std::cout << "menu " << each.name.in() << " " << each.served << " " << each.price << " " << int(each.vegan);
    for (CORBA::ULong score = 0; score < each.marks.length(); score++) std::cout << " " << each.marks[score];
    std::cout << "\n";
  }
  Dish_var ordered = kitchen->order("stew", 2);
  std::cout << "order " << ordered->name.in() << " " << ordered->price << "\n";
  try {
    Dish_var none = kitchen->order("soup", 9);
  } catch (const SoldOut& out) {
    std::cout << "sold out " << out.dish.in() << " " << out.left << "\n";
  }
  try {
    Dish_var none = kitchen->order("fish", 1);
  } catch (const Closed&) {
    std::cout << "closed\n";
  }
  CORBA::Long rest = 0;
  CORBA::Long quotient = kitchen->divide(17, 5, rest);
  std::cout << "divide " << quotient << " " << rest << "\n";
  try {
    kitchen->divide(1, 0, rest);
  } catch (const CORBA::SystemException& failed) {
    std::cout << "failed " << failed._name() << "\n";
  }
  CORBA::Object_var same = kitchen->itself();
  std::cout << "itself " << same->_is_equivalent(object) << " " << same->_is_a("IDL:demo/Room:1.0") << " "
            << same->_is_a("IDL:demo/Garden:1.0") << " " << same->_non_existent() << "\n";
  kitchen->note("psst");
  Strings_var notes = kitchen->notes();
  for (CORBA::ULong at = 0; at < notes->length(); at++) std::cout << "note " << notes[at].in() << "\n";
  return 0;
}

static int note(CORBA::ORB_ptr orb, const char* ior, const char* text) {
  CORBA::Object_var object = orb->string_to_object(ior);
  Kitchen_var kitchen = Kitchen::_narrow(object);
  if (CORBA::is_nil(kitchen)) return 3;
  kitchen->note(text);
  return 0;
}

static int manage(CORBA::ORB_ptr orb, const char* where, const char* group_ior, const char* member_ior) {
  using namespace PortableGroup;
  ObjectGroupManager_var manager = ObjectGroupManager::_narrow(CORBA::Object_var(orb->string_to_object(where)));
  CORBA::Object_var group = orb->string_to_object(group_ior), member = orb->string_to_object(member_ior);
  NameComponentSeq place;
  place.length(2);
  place[0].id = CORBA::string_dup("host");
  place[0].kind = CORBA::string_dup("lan");
  place[1].id = CORBA::string_dup("1");
  std::cout << "number " << manager->get_object_group_id(group) << "\n";
  CORBA::Object_var again = manager->add_member(group, place, member);
  try {
    manager->add_member(group, place, member);
  } catch (const MemberAlreadyPresent&) {
    std::cout << "present\n";
  }
  NameComponentSeqSeq_var places = manager->locations_of_members(again);
  for (CORBA::ULong at = 0; at < places->length(); at++)
    for (CORBA::ULong part = 0; part < places[at].length(); part++)
      std::cout << "at " << places[at][part].id << "." << places[at][part].kind << "\n";
  demo::Kitchen_var found = demo::Kitchen::_narrow(CORBA::Object_var(manager->get_member_ref(group, place)));
  std::cout << "member says " << CORBA::String_var(found->greet("omni")) << "\n";
  CORBA::String_var newest = orb->object_to_string(CORBA::Object_var(manager->get_object_group_ref(group)));
  std::cout << "newest " << newest << "\n";
  again = manager->remove_member(group, place);
  try {
    manager->get_member_ref(group, place);
  } catch (const MemberNotFound&) {
    std::cout << "gone\n";
  }
  try {
    manager->get_object_group_id(member);
  } catch (const ObjectGroupNotFound&) {
    std::cout << "no group\n";
  }
  return 0;
}

int main(int count, char** words) {
  try {
    CORBA::ORB_var orb = CORBA::ORB_init(count, words);
    int code = 2;
    if (count == 2 && std::string(words[1]) == "serve") code = serve(orb);
    if (count == 3 && std::string(words[1]) == "call") code = call(orb, words[2]);
    if (count == 4 && std::string(words[1]) == "note") code = note(orb, words[2], words[3]);
    if (count == 5 && std::string(words[1]) == "manage") code = manage(orb, words[2], words[3], words[4]);
    orb->destroy();
    return code;
  } catch (const CORBA::Exception& failed) {
    std::cerr << failed._name() << std::endl;
    return 1;
  }
}
